# Each node's pods live in cgroups of their own, /lab-nodeN, so that one node can lose power alone. Sourced, never run.

V1_HIERARCHIES="cpu cpuacct cpuset memory devices freezer blkio pids systemd unified"
cgroup_v2() { [ -f /sys/fs/cgroup/cgroup.controllers ]; }

# cgroup_dirs N   prints the node's directory in every hierarchy
cgroup_dirs() {
  local h
  if cgroup_v2; then echo "/sys/fs/cgroup/lab-node$1"; return; fi
  for h in $V1_HIERARCHIES; do [ ! -d "/sys/fs/cgroup/$h" ] || echo "/sys/fs/cgroup/$h/lab-node$1"; done
}

cgroup_make() { # N
  local d c f
  if cgroup_v2; then
    d=$(cgroup_dirs "$1")
    mkdir -p "$d"
    for c in cpuset cpu io memory hugetlb pids; do # one that the kernel lacks must not lose the others
      { echo "+$c" >/sys/fs/cgroup/cgroup.subtree_control && echo "+$c" >"$d/cgroup.subtree_control"; } 2>/dev/null || true
    done
    return
  fi
  for d in $(cgroup_dirs "$1"); do mkdir -p "$d"; done
  for f in cpus mems; do cat /sys/fs/cgroup/cpuset/cpuset.$f >"/sys/fs/cgroup/cpuset/lab-node$1/cpuset.$f"; done # a new v1 cpuset is empty
}

cgroup_pids() { # N
  local d=/sys/fs/cgroup/pids/lab-node$1
  ! cgroup_v2 || d=$(cgroup_dirs "$1")
  [ ! -d "$d" ] || find "$d" -name cgroup.procs -exec cat {} + 2>/dev/null
}

cgroup_remove() { # N
  local d
  for d in $(cgroup_dirs "$1"); do [ ! -d "$d" ] || find "$d" -depth -type d -exec rmdir {} \; 2>/dev/null; done
}
