#!/bin/bash
# cluster.sh: a whole Kubernetes on one Linux machine, without registry, Docker or internet. `cluster.sh help` lists
# what it can do, README.md says how it is made.
set -euo pipefail
HERE=$(cd "$(dirname "$0")" && pwd)
for part in common packages cgroups control node faults; do . "$HERE/lib/$part.sh"; done

usage() {
  cat <<'U'
usage: cluster.sh COMMAND

  up                  start the cluster; does nothing when it is up, and starts again nodes that were cut
  down                stop everything and remove every trace; works from any state
  status              processes and nodes
  env                 shell lines that put kubectl and helm of this cluster first: eval "$(cluster.sh env)"
  load TAR...         put images into every running node
  run CMD...          run a program on this machine with the cluster's DNS

  cut-node N          power cut of node N; volumes survive
  start-node N        power for node N again
  cut-wire N          unplug node N's network; join-wire N plugs it in
  isolate-pod NS POD  cut a pod off from all other pods, but not from the API server; join-pods ends it for all
  pause-api           API server hangs; resume-api
  stop-api            API server refuses connections; start-api
  pod-pid NS POD C    process id of a container's first process
  kill-pod NS POD C   SIGKILL for it; prints the time in nanoseconds

Environment: LAB (state, /var/lib/tidemark-lab), NODES (3), PROXY_MODE (iptables or nftables), LAB_CACHE (binaries).
U
}

lock() { # one up or down at a time
  exec 9>/run/lock/tidemark-lab.lock
  flock -w 300 9 || die "another cluster.sh has been running for five minutes; see: fuser /run/lock/tidemark-lab.lock"
}

api_answers() { kubectl --request-timeout=3s get --raw /readyz >/dev/null 2>&1; }

up() {
  local n cut= api
  [ -x "$BIN/kubelet" ] && [ -f "$HERE/images/pause.tar" ] || "$HERE/build.sh"
  need_packages $LAB_NEEDS
  need_kernel
  ! api=$(pid_of kube-apiserver) || kill -CONT "$api"
  if [ -n "$api" ] && pid_of etcd >/dev/null && api_answers; then
    for n in $(node_list); do node_runs "$n" || cut+=" $n"; done
    start_managers
    start_volumes_and_dns
    if [ -z "$cut" ]; then say "the cluster is up already"; return; fi
    for n in $cut; do say "node $n is down: starting it"; restart_node "$n"; done
  elif [ -d "$LAB" ]; then
    say "half a cluster is left from before: removing it first"
    down
  fi
  if [ -z "$cut" ]; then need_ports; up_control; fi
  up_nodes
}

# restart_node N   clears what a cut left, starts the node, and waits until its new kubelet has reported: until the
# API server has noticed the cut, it goes on showing what the old one said.
restart_node() {
  local before
  before=$(node_heartbeat "$1")
  (set +e; cut_node "$1") 2>/dev/null
  up_node "$1"
  waitfor 60 "a report of node $1" "node$1-kubelet" eval '[ "$(node_heartbeat '"$1"')" != "'"$before"'" ]'
  await_node "$1"
}
node_heartbeat() { kubectl --request-timeout=3s get node "node$1" -o 'jsonpath={.status.conditions[?(@.type=="Ready")].lastHeartbeatTime}' 2>/dev/null; }

down() {
  set +e
  local n c
  case $LAB in /?*/?*) ;; *) die "LAB=$LAB is no directory of its own" ;; esac
  if [ -d "$LAB" ] && [ ! -f "$LAB/.tidemark-lab" ] && [ ! -f "$LAB/pki/admin.kubeconfig" ]; then
    die "$LAB was not made by cluster.sh; not removing it"
  fi
  for n in $(seq 9); do [ ! -d "$LAB/node$n" ] || cut_node "$n" 2>/dev/null; done
  for c in coredns provisioner kube-scheduler kube-controller-manager kube-apiserver etcd; do stop $c; done
  rm -f /var/lib/cni/results/lab-* /var/lib/cni/results/cni-loopback-*
  [ ! -d /var/log/containers ] || find /var/log/containers -lname "$LAB/*" -delete 2>/dev/null
  ip link del lab0 2>/dev/null
  ip route del $SVC_CIDR dev lo metric 9999 2>/dev/null
  ip route del 198.18.0.0/16 dev lo metric 9999 2>/dev/null
  grep -q " $LAB/" /proc/mounts && die "mounts are left under $LAB: $(grep -c " $LAB/" /proc/mounts); not removing it"
  rm -rf "$LAB"
  set -e
}

status() {
  local f p
  need_up
  for f in "$LAB"/run/*.pid; do
    f=$(basename "$f" .pid)
    if p=$(pid_of "$f"); then
      printf '%-26s pid %-7s rss %s MiB\n' "$f" "$p" "$(awk '/VmRSS/{print int($2/1024)}' "/proc/$p/status")"
    else
      printf '%-26s not running; see %s\n' "$f" "$LAB/log/$f.log"
    fi
  done
  kubectl --request-timeout=3s get nodes
}

load() {
  local n
  [ $# -gt 0 ] || die "load needs the files to load"
  for n in $(node_list); do ! node_runs "$n" || load_images "$n" "$@"; done
}

node_arg() {
  case ${1:-} in [1-9]) ;; *) die "which node? Give its number, 1 to $(node_list | tail -n 1)" ;; esac
}

command=${1:-help}
shift || true
case $command in
help | -h | --help) usage; exit 0 ;;
env) echo "export KUBECONFIG=$KUBECONFIG HELM_CACHE_HOME=$HELM_CACHE_HOME HELM_CONFIG_HOME=$HELM_CONFIG_HOME HELM_DATA_HOME=$HELM_DATA_HOME PATH=$BIN:\$PATH"; exit 0 ;;
esac
need_root "$command"
case $command in
up) lock; up ;;
down) lock; down; say "the cluster is gone" ;;
status) status ;;
load) need_up; load "$@" ;;
run) need_up; run "$@" ;;
cut-node) need_up; node_arg "${1:-}"; set +e; cut_node "$1" ;;
start-node) need_up; node_arg "${1:-}"; node_runs "$1" || restart_node "$1" ;;
cut-wire | join-wire) need_up; node_arg "${1:-}"; "${command/-/_}" "$1" ;;
isolate-pod) need_up; [ $# = 2 ] || die "usage: $0 isolate-pod NAMESPACE POD"; isolate_pod "$@" ;;
join-pods) need_up; join_pods ;;
pause-api | resume-api | stop-api | start-api) [ -d "$LAB" ] || need_up; "${command/-/_}" ;;
pod-pid | kill-pod) need_up; [ $# = 3 ] || die "usage: $0 $command NAMESPACE POD CONTAINER"; "${command/-/_}" "$@" ;;
*) usage >&2; exit 2 ;;
esac
