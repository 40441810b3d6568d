# What the machine must have before a cluster can run on it. Sourced, never run.

need_root() { [ "$(id -u)" = 0 ] || die "must run as root: network namespaces, mounts and cgroups are made. Try: sudo $0 $*"; }

# PROGRAM:PACKAGE, or PATH:PACKAGE
LAB_NEEDS="containerd:containerd ctr:containerd runc:runc /usr/lib/cni/bridge:containernetworking-plugins
  iptables:iptables ip:iproute2 ss:iproute2 nsenter:util-linux setsid:util-linux flock:util-linux unshare:util-linux
  sysctl:procps mount:mount"

# missing PROGRAM:PACKAGE...   prints the packages of those that are not there
missing() {
  local want
  for want in "$@"; do
    case $want in
    /*) [ -e "${want%%:*}" ] || echo "${want##*:}" ;;
    *) PATH=$PATH:/usr/sbin:/sbin command -v "${want%%:*}" >/dev/null || echo "${want##*:}" ;;
    esac
  done | sort -u
}

# need_packages PROGRAM:PACKAGE...   installs what is missing where that can be done, and names it otherwise
need_packages() {
  local lack
  lack=$(missing "$@" | xargs)
  [ -n "$lack" ] || return 0
  command -v apt-get >/dev/null || die "these Debian packages, or what your system calls them, are needed and missing: $lack"
  say "installing Debian packages: $lack"
  mkdir -p "$LAB_TMP"
  { apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends $lack; } >"$LAB_TMP/apt.log" 2>&1 || {
    tail -n 5 "$LAB_TMP/apt.log" >&2
    die "apt-get could not install: $lack. Install them by hand and try again."
  }
  lack=$(missing "$@" | xargs)
  [ -z "$lack" ] || die "still missing after the installation: $lack"
}
LAB_TMP=${TMPDIR:-/tmp}/tidemark-lab-tmp

need_kernel() { # modules are built in, or loaded, or (in a container) out of reach: the first use tells
  modprobe -aq overlay br_netfilter veth bridge 2>/dev/null || true
}

# need_ports   says which process holds a port that the control plane wants
need_ports() {
  local p taken
  for p in 6443 2379 2380 10257 10259; do
    taken=$(ss -Hltnp "sport = :$p" 2>/dev/null | head -n 1)
    [ -z "$taken" ] || die "TCP port $p is taken: $taken. Stop that process; another Kubernetes or etcd on this machine is the usual cause."
  done
  taken=$(ss -Hlunp "sport = :53" 2>/dev/null | grep -E '(0\.0\.0\.0|\*|\[::\]):53 ' | head -n 1) || true
  [ -z "$taken" ] || die "UDP port 53 is taken on every address: $taken. Bind that DNS server to its own addresses."
  taken=$(ip -o route show root 198.18.0.0/15 | head -n 1)
  [ -z "$taken" ] || die "the cluster's address range 198.18.0.0/15 is in use on this machine: $taken"
}
