# One node: containerd, kubelet and kube-proxy in a network namespace of their own. Sourced, never run.

node_network() { # N
  local n=$1 ip m
  ip=$(node_ip "$n")
  [ ! -e "/run/netns/lab-node$n" ] || return 0
  ip netns add "lab-node$n"
  # a fixed hardware address: the other nodes' neighbour tables stay right when the node comes back
  ip link add "lab-n$n" type veth peer name eth0 address "02:1a:b0:00:00:0$n" netns "lab-node$n"
  ip link set "lab-n$n" master lab0 up
  in_node "$n" sh -c "ip link set lo up; ip addr add $ip/24 dev eth0; ip link set eth0 up
    sysctl -qw net.ipv4.ip_forward=1 net.bridge.bridge-nf-call-iptables=1
    ip route replace $SVC_CIDR dev lo src $ip"
  for m in $(node_list); do
    [ "$m" = "$n" ] || in_node "$n" ip route replace "198.18.$m.0/24" via "$(node_ip "$m")"
  done
  ip route replace "198.18.$n.0/24" via "$ip"
  [ "$n" != 1 ] || ip route replace $SVC_CIDR via "$ip"
}

node_config() { # N
  local n=$1 N=$LAB/node$1
  mkdir -p "$N"/{cni,kubelet}
  cat >"$N/cni/10-lab.conflist" <<Y
{"cniVersion":"1.0.0","name":"lab","plugins":[
 {"type":"bridge","bridge":"cni0","isGateway":true,"hairpinMode":true,
  "ipam":{"type":"host-local","dataDir":"$N/cni-ipam","ranges":[[{"subnet":"198.18.$n.0/24"}]],
          "routes":[{"dst":"198.18.0.0/15"}]}}]}
Y
  cat >"$N/containerd.toml" <<Y
version = 2
root = "$N/containerd"
state = "$N/containerd-state"
disabled_plugins = ["io.containerd.snapshotter.v1.btrfs","io.containerd.snapshotter.v1.zfs","io.containerd.snapshotter.v1.devmapper","io.containerd.snapshotter.v1.aufs","io.containerd.internal.v1.tracing","io.containerd.tracing.processor.v1.otlp"]
[grpc]
address = "$N/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "localhost/pause:1"
# without CAP_SYS_RESOURCE runc cannot lower the score, and every sandbox would fail
restrict_oom_score_adj = true
# else dead clusters leave mounts under /run/netns
netns_mounts_under_state_dir = true
[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "/usr/lib/cni"
conf_dir = "$N/cni"
[plugins."io.containerd.grpc.v1.cri".containerd]
default_runtime_name = "runc"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
SystemdCgroup = false
Root = "$N/runc"
Y
  cat >"$N/kubelet.yaml" <<Y
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
failCgroupV1: false
cgroupDriver: cgroupfs
cgroupRoot: /lab-node$n
cgroupsPerQOS: true
enforceNodeAllocatable: []
containerRuntimeEndpoint: unix://$N/containerd.sock
address: $(node_ip "$n")
authentication:
  anonymous: {enabled: false}
  webhook: {enabled: true}
  x509: {clientCAFile: $LAB/pki/ca.crt}
authorization: {mode: Webhook}
tlsCertFile: $LAB/pki/node$n-server.crt
tlsPrivateKeyFile: $LAB/pki/node$n-server.key
clusterDNS: [$DNS_IP]
clusterDomain: cluster.local
resolvConf: ""
failSwapOn: false
evictionHard: {memory.available: "100Mi", nodefs.available: "1%", imagefs.available: "1%"}
imageGCHighThresholdPercent: 100
volumePluginDir: $N/kubelet/volume-plugins
podLogsDir: $N/pod-logs
nodeStatusUpdateFrequency: 2s
nodeLeaseDurationSeconds: 8
syncFrequency: 10s
maxPods: 60
Y
}

up_node() { # N
  local n=$1 N=$LAB/node$1 ip
  ip=$(node_ip "$n")
  node_network "$n"
  cgroup_make "$n"
  node_config "$n"
  start "node$n-containerd" nsenter --net="/run/netns/lab-node$n" containerd --config "$N/containerd.toml" --log-level warn
  waitfor 30 "containerd of node $n" "node$n-containerd" ctr -a "$N/containerd.sock" version
  load_images "$n" "$HERE"/images/*.tar
  start "node$n-kubelet" nsenter --net="/run/netns/lab-node$n" kubelet --config="$N/kubelet.yaml" --kubeconfig="$LAB/pki/node$n.kubeconfig" \
    --root-dir="$N/kubelet" --cert-dir="$N/kubelet/pki" --hostname-override="node$n" --node-ip="$ip" \
    --node-labels="topology.kubernetes.io/zone=zone-$n,topology.kubernetes.io/region=lab" --v=2
  start "node$n-kube-proxy" nsenter --net="/run/netns/lab-node$n" kube-proxy --kubeconfig="$LAB/pki/kube-proxy.kubeconfig" --hostname-override="node$n" \
    --proxy-mode="$PROXY_MODE" --cluster-cidr=198.18.0.0/17 --bind-address="$ip" \
    --iptables-min-sync-period=0s --nodeport-addresses=primary \
    --conntrack-max-per-core=0 --conntrack-min=0 --conntrack-tcp-timeout-established=0s --conntrack-tcp-timeout-close-wait=0s
}

node_runs() { pid_of "node$1-kubelet" >/dev/null && pid_of "node$1-containerd" >/dev/null; }

load_images() { # N tar...
  local n=$1 i; shift
  for i in "$@"; do ctr -a "$LAB/node$n/containerd.sock" -n k8s.io images import "$i" >/dev/null; done
}

await_node() { waitfor 90 "node $1" "node$1-kubelet" kubectl wait --for=condition=Ready --timeout=1s "node/node$1"; }

up_nodes() {
  local n
  for n in $(node_list); do node_runs "$n" || up_node "$n"; done
  for n in $(node_list); do await_node "$n"; done
  # the controller manager takes some seconds; no pod can be made before this
  waitfor 60 "the default service account" kube-controller-manager kubectl get serviceaccount default
  say "$(node_list | wc -l) nodes ready"
}

# cut_node N   a power cut: the wire goes first, so that nobody hears a connection being closed; then every process,
# and the memory-backed and root file systems of the node. Volumes stay: they are the network disks of this cluster.
# What is not shown here: data that was not synced survives, because the kernel of this machine goes on.
cut_node() {
  local n=$1 N=$LAB/node$1 p m f
  ip link set "lab-n$n" down 2>/dev/null
  for f in kubelet kube-proxy; do stop "node$n-$f"; done
  for _ in 1 2 3; do
    for p in $(cgroup_pids "$n"); do kill -9 "$p" 2>/dev/null; done
    sleep 0.1
  done
  stop "node$n-containerd"
  for p in /proc/[0-9]*; do
    case $({ tr '\0' ' ' <"$p/cmdline"; } 2>/dev/null) in *containerd-shim*"-address $N/containerd.sock"*) kill -9 "${p#/proc/}" ;; esac
  done
  grep " $N/" /proc/mounts | cut -d' ' -f2 | sort -r | while read -r m; do umount -l "$m"; done
  cgroup_remove "$n"
  for f in $(in_node "$n" ip -o link show master cni0 2>/dev/null | sed -E 's/^[0-9]+: ([^@:]+).*/\1/'); do in_node "$n" ip link del "$f"; done
  ip netns del "lab-node$n" 2>/dev/null
  ip link del "lab-n$n" 2>/dev/null
  # a volume that is still mounted must not be emptied through its mount
  if grep -q " $N/" /proc/mounts; then echo "lab: $N still has mounts; left in place" >&2; else rm -rf "$N"; fi
}
