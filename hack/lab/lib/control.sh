# The control plane: etcd, kube-apiserver, controller manager, scheduler, volumes, DNS. Sourced, never run.

start_etcd() {
  start etcd etcd --data-dir "$LAB/etcd" --unsafe-no-fsync \
    --listen-client-urls http://127.0.0.1:2379 --advertise-client-urls http://127.0.0.1:2379 \
    --listen-peer-urls http://127.0.0.1:2380 --initial-advertise-peer-urls http://127.0.0.1:2380 \
    --initial-cluster default=http://127.0.0.1:2380 --log-level warn
}

start_apiserver() {
  local P=$LAB/pki
  start kube-apiserver kube-apiserver --etcd-servers=http://127.0.0.1:2379 \
    --bind-address=0.0.0.0 --secure-port=6443 --advertise-address=$API_IP \
    --service-cluster-ip-range=$SVC_CIDR --allow-privileged=true \
    --authorization-mode=Node,RBAC --enable-admission-plugins=NodeRestriction \
    --client-ca-file="$P/ca.crt" --tls-cert-file="$P/apiserver.crt" --tls-private-key-file="$P/apiserver.key" \
    --kubelet-client-certificate="$P/kubelet-client.crt" --kubelet-client-key="$P/kubelet-client.key" \
    --kubelet-certificate-authority="$P/ca.crt" --kubelet-preferred-address-types=InternalIP \
    --requestheader-client-ca-file="$P/ca.crt" --requestheader-allowed-names=front-proxy-client \
    --requestheader-username-headers=X-Remote-User --requestheader-group-headers=X-Remote-Group \
    --requestheader-extra-headers-prefix=X-Remote-Extra- \
    --proxy-client-cert-file="$P/front-proxy-client.crt" --proxy-client-key-file="$P/front-proxy-client.key" \
    --service-account-issuer=https://kubernetes.default.svc.cluster.local \
    --service-account-key-file="$P/sa.pub" --service-account-signing-key-file="$P/sa.key" \
    --enable-aggregator-routing=true --profiling=false
  waitfor 120 "the API server" kube-apiserver kubectl --request-timeout=2s get --raw /readyz
}

# start_managers   both exit at once when the API server does not answer yet, so only after it
start_managers() {
  local P=$LAB/pki
  pid_of kube-controller-manager >/dev/null || start kube-controller-manager kube-controller-manager --kubeconfig="$P/controller-manager.kubeconfig" \
    --authentication-kubeconfig="$P/controller-manager.kubeconfig" --authorization-kubeconfig="$P/controller-manager.kubeconfig" \
    --bind-address=127.0.0.1 --leader-elect=false --use-service-account-credentials=true \
    --service-account-private-key-file="$P/sa.key" --root-ca-file="$P/ca.crt" \
    --cluster-signing-cert-file="$P/ca.crt" --cluster-signing-key-file="$P/ca.key" \
    --pvclaimbinder-sync-period=2s --node-monitor-period=1s --node-monitor-grace-period=12s \
    --horizontal-pod-autoscaler-sync-period=2s
  pid_of kube-scheduler >/dev/null || start kube-scheduler kube-scheduler --kubeconfig="$P/scheduler.kubeconfig" \
    --authentication-kubeconfig="$P/scheduler.kubeconfig" --authorization-kubeconfig="$P/scheduler.kubeconfig" \
    --bind-address=127.0.0.1 --leader-elect=false
}

start_volumes_and_dns() {
  pid_of provisioner >/dev/null || start provisioner provisioner -kubeconfig "$KUBECONFIG" -dir "$LAB/volumes"
  cat >"$LAB/Corefile" <<Y
.:53 {
    bind $API_IP
    errors
    kubernetes cluster.local in-addr.arpa {
        kubeconfig $KUBECONFIG
        ttl 1
    }
}
Y
  pid_of coredns >/dev/null || start coredns coredns -conf "$LAB/Corefile"
  # Programs on this machine that are run by `cluster.sh run` ask CoreDNS itself, so that names go on being
  # found while node 1, which carries the host's way to Services, is cut off.
  printf 'nameserver %s\nsearch default.svc.cluster.local svc.cluster.local cluster.local\noptions ndots:5 timeout:1 attempts:5\n' $API_IP >"$LAB/resolv.conf"
}

up_control() {
  mkdir -p "$LAB"/{pki,log,run,etcd}
  echo "made by cluster.sh; removed by cluster.sh down" >"$LAB/.tidemark-lab"
  echo "$NODES" >"$LAB/nodes"
  ip link show lab0 >/dev/null 2>&1 || ip link add lab0 type bridge
  ip addr replace $API_IP/24 dev lab0
  ip link set lab0 up
  # host -> Services goes through node 1's kube-proxy; before it exists, nowhere, and never out by a default route
  ip route replace 198.18.0.0/16 dev lo metric 9999
  ip route replace $SVC_CIDR dev lo metric 9999
  local n nodes=
  for n in $(node_list); do nodes+=node$n=$(node_ip "$n"),; done
  [ -f "$LAB/pki/ca.crt" ] || mkpki -dir "$LAB/pki" -server https://$API_IP:6443 -ips 127.0.0.1,$API_IP,198.19.0.1 -nodes "$nodes"
  start_etcd
  start_apiserver
  say "API server ready"
  start_managers
  sed "s/@DNS_IP@/$DNS_IP/; s/@API_IP@/$API_IP/" "$HERE/base.yaml" | kubectl apply -f - >/dev/null
  start_volumes_and_dns
}
