# Names, addresses and small tools shared by the parts of cluster.sh. Sourced, never run.

LAB=${LAB:-/var/lib/tidemark-lab}  # everything that a running cluster writes is in here
BIN=${BIN:-$HERE/bin}              # filled by build.sh
NODES=${NODES:-3}
PROXY_MODE=${PROXY_MODE:-iptables} # or nftables
SVC_CIDR=198.19.0.0/24
DNS_IP=198.19.0.10
API_IP=198.18.254.1
export PATH=$BIN:$PATH
# The only kubeconfig that is ever read or written: the one that mkpki made for this cluster.
export KUBECONFIG=$LAB/pki/admin.kubeconfig
# helm's caches belong to the cluster too, not to the user's home.
export HELM_CACHE_HOME=$LAB/helm/cache HELM_CONFIG_HOME=$LAB/helm/config HELM_DATA_HOME=$LAB/helm/data

node_ip() { echo "198.18.254.1$1"; }
node_list() { seq "$(cat "$LAB/nodes" 2>/dev/null || echo "$NODES")"; }
in_node() { # N cmd...     not `ip netns exec`: that mounts a /sys without the cgroups
  local n=$1; shift
  nsenter --net="/run/netns/lab-node$n" "$@"
}

ms() { echo $(($(date +%s%N) / 1000000)); }
T0=$(ms)
say() { printf 'lab: %6.1f s  %s\n' "$(($(ms) - T0))e-3" "$*"; }
die() { printf 'lab: %s\n' "$*" >&2; exit 1; }

# start NAME CMD...   in a session of its own, without this process's files (locks among them); log and pid are kept under $LAB
start() {
  local n=$1 fd; shift
  (
    for fd in /proc/$BASHPID/fd/*; do
      fd=${fd##*/}
      [ "$fd" -le 2 ] || eval "exec $fd>&-"
    done
    exec setsid "$@"
  ) >>"$LAB/log/$n.log" 2>&1 </dev/null &
  echo $! >"$LAB/run/$n.pid"
}

# pid_of NAME   prints the pid if that process still runs. Every command line names $LAB, so a pid that
# something else has by now is never taken for ours.
pid_of() {
  local p
  p=$(cat "$LAB/run/$1.pid" 2>/dev/null) || return 1
  case $({ tr '\0' ' ' <"/proc/$p/cmdline"; } 2>/dev/null) in *"$LAB/"*) echo "$p" ;; *) return 1 ;; esac
}

# stop NAME   with SIGKILL: all state is thrown away, and kubelet takes seconds over SIGTERM
stop() {
  local p
  if p=$(pid_of "$1"); then kill -9 "$p" 2>/dev/null || true; fi
  rm -f "$LAB/run/$1.pid"
}

# waitfor SECONDS WHAT LOG CMD...   until CMD succeeds; on time-out shows the end of LOG
waitfor() {
  local t=$1 what=$2 log=$3; shift 3
  local end=$((SECONDS + t))
  until "$@" >/dev/null 2>&1; do
    if [ $SECONDS -ge $end ]; then
      tail -n 5 "$LAB/log/$log.log" >&2 2>/dev/null || true
      die "$what did not come within $t s. The lines above end $LAB/log/$log.log; '$0 down' cleans up."
    fi
    sleep 0.1
  done
}
