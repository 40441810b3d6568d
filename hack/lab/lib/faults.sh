# Faults on request: the API server away, a node's wire cut, a container's process killed. Sourced, never run.

need_up() { pid_of kube-apiserver >/dev/null || die "no cluster is up. Start one with: $0 up"; }

pause_api() { # every request hangs: the hardest outage, because nothing is refused
  local p
  p=$(pid_of kube-apiserver) || die "the API server is not running"
  kill -STOP "$p"
}

resume_api() {
  local p
  p=$(pid_of kube-apiserver) || die "the API server is not running; start-api starts one"
  kill -CONT "$p"
  waitfor 60 "the API server" kube-apiserver kubectl --request-timeout=2s get --raw /readyz
}

stop_api() { stop kube-apiserver; } # every request is refused

start_api() {
  pid_of kube-apiserver >/dev/null || start_apiserver
  start_managers
}

cut_wire() { ip link set "lab-n$1" down; }
join_wire() { ip link set "lab-n$1" up; }

# isolate_pod NAMESPACE POD   drops what the pod sends to other pods and gets from them. Its node, whose kubelet probes it,
# and this machine, where API server and DNS are, still reach it. A pod that is made anew has another address, and no cut.
isolate_pod() {
  local n ip
  ip=$(kubectl -n "$1" get pod "$2" -o 'jsonpath={.status.podIP}')
  [ -n "$ip" ] || die "pod $1/$2 has no address"
  for n in $(node_list); do
    node_runs "$n" || continue
    in_node "$n" sh -c "iptables -w -n -L LAB-ISOLATED >/dev/null 2>&1 || { iptables -w -N LAB-ISOLATED && iptables -w -I FORWARD -j LAB-ISOLATED; }
      iptables -w -A LAB-ISOLATED -s $ip ! -d $API_IP/24 -j DROP && iptables -w -A LAB-ISOLATED -d $ip ! -s $API_IP/24 -j DROP"
  done
}

# join_pods   takes back every isolate_pod
join_pods() {
  local n
  for n in $(node_list); do
    in_node "$n" sh -c "iptables -w -D FORWARD -j LAB-ISOLATED && iptables -w -F LAB-ISOLATED && iptables -w -X LAB-ISOLATED" 2>/dev/null || true
  done
}

# pod_pid NAMESPACE POD CONTAINER   prints the container's first process as this machine numbers it
pod_pid() {
  local node id
  read -r node id < <(kubectl -n "$1" get pod "$2" -o "jsonpath={.spec.nodeName} {.status.containerStatuses[?(@.name==\"$3\")].containerID}") || true
  [ -n "${id:-}" ] || die "pod $1/$2 has no running container $3"
  ctr --connect-timeout 2s -a "$LAB/$node/containerd.sock" -n k8s.io tasks ls | awk -v id="${id#containerd://}" '$1 == id { print $2; found = 1 } END { exit !found }' ||
    die "container $3 of pod $1/$2 has no process on $node"
}

kill_pod() { # NAMESPACE POD CONTAINER   SIGKILL, as the kernel's out-of-memory killer would
  local p
  p=$(pod_pid "$@")
  kill -9 "$p"
  date +%s%N # when, in nanoseconds since 1970
}

# run CMD...   on this machine, but with the cluster's DNS, as a client machine beside the cluster
run() {
  exec unshare -m sh -c 'mount --make-rprivate / && mount --bind "$0" /etc/resolv.conf && exec "$@"' "$LAB/resolv.conf" "$@"
}
