#!/bin/bash
# build.sh: fills ./bin with every program that a cluster and envtest need, and ./images with the pause image.
# The first time it compiles Kubernetes: about 5 minutes on 2 cores, 200 MB of modules and 4 GB of Go's build cache.
# The results are kept outside of the repository, by what they were made from; from then on this takes a second.
set -euo pipefail
HERE=$(cd "$(dirname "$0")" && pwd)
cd "$HERE"
K8S=v1.37.2
CACHE=${LAB_CACHE:-${HOME:?set HOME or LAB_CACHE}/.cache/tidemark-lab}
PROGRAMS="kube-apiserver kube-controller-manager kube-scheduler kubelet kube-proxy kubectl etcd helm"

# -trimpath and constant -X values make Go's build cache serve every clone; -l (no inlining) compiles a sixth faster.
export CGO_ENABLED=0 GOFLAGS=-buildvcs=false GOWORK=off
V=k8s.io/component-base/version
LD="-s -w -X $V.gitVersion=$K8S -X $V.gitMajor=1 -X $V.gitMinor=$(echo $K8S | cut -d. -f2) -X $V.gitTreeState=clean -X $V.gitCommit=0000000000000000000000000000000000000000 -X $V.buildDate=2026-01-01T00:00:00Z"

die() { echo "lab: $*" >&2; exit 1; }

# with_progress TEXT CMD...   prints the elapsed time every 15 s while CMD runs, and the end of its output if it fails
with_progress() {
  local text=$1 log pid t0=$SECONDS next=15; shift
  log=$(mktemp)
  "$@" >"$log" 2>&1 &
  pid=$!
  trap 'kill $pid 2>/dev/null; rm -f "$log"; exit 130' INT TERM
  while kill -0 $pid 2>/dev/null; do
    sleep 0.2
    if [ $((SECONDS - t0)) -ge $next ]; then echo "lab:   … $text, $((SECONDS - t0)) s so far"; next=$((next + 15)); fi
  done
  trap - INT TERM
  if ! wait $pid; then
    grep -v '^go: downloading' "$log" | tail -n 20 >&2
    rm -f "$log"
    return 1
  fi
  rm -f "$log"
}

check_machine() {
  command -v go >/dev/null || die "Go is missing: install Go 1.26 or newer and put it into PATH"
  local kib
  kib=$(df -Pk "$CACHE" | awk 'NR == 2 { print $4 }')
  [ "$kib" -gt $((6 << 20)) ] || echo "lab: warning: less than 6 GiB are free for $CACHE; the first build needs that much" >&2
  kib=$(awk '/MemAvailable/ { print $2 }' /proc/meminfo)
  [ "$kib" -gt $((3 << 20)) ] || echo "lab: warning: less than 3 GiB of memory are free; linking Kubernetes needs that much" >&2
}

# build DIR TEXT PACKAGE...   into DIR, whole or not at all
build() {
  local dir=$1 text=$2; shift 2
  rm -rf "$dir.part"
  mkdir -p "$dir.part"
  with_progress "$text" go build -trimpath -gcflags="all=-dwarf=false -l" -ldflags "$LD" -o "$dir.part/" "$@" ||
    die "$text failed. With a message about 'dial tcp' or 'proxy', check that the Go module proxy can be reached (go env GOPROXY)."
  touch "$dir.part/done"
  rm -rf "$dir"
  mv "$dir.part" "$dir"
}

key() { { go version; echo "$LD"; cat go.mod go.sum "$@"; } | sha256sum | cut -c1-16; }

mkdir -p "$CACHE"
check_machine
exec 9>"$CACHE/lock"
flock -n 9 || { echo "lab: another build is running; waiting for it"; flock 9; }

KUBE=$CACHE/k8s-$(key cmd/k8s/*.go cmd/coredns/*.go)
TOOLS=$CACHE/tools-$(key cmd/provisioner/*.go cmd/mkpki/*.go cmd/mkimage/*.go cmd/pause/*.go)
if [ ! -f "$KUBE/done" ]; then
  echo "lab: building Kubernetes $K8S, etcd, CoreDNS and helm from source: about 5 minutes on 2 cores, only once"
  build "$KUBE" "building Kubernetes" ./cmd/k8s ./cmd/coredns
  for p in $PROGRAMS; do ln -sf k8s "$KUBE/$p"; done
fi
[ -f "$TOOLS/done" ] || build "$TOOLS" "building the lab's own tools" ./cmd/provisioner ./cmd/mkpki ./cmd/mkimage ./cmd/pause
touch "$KUBE/done" "$TOOLS/done"
# what no clone has asked for in a month goes
find "$CACHE" -mindepth 2 -maxdepth 2 -name done -mtime +30 -printf '%h\n' | xargs -r rm -rf

[ ! -L bin ] || rm -f bin
mkdir -p bin images
for p in k8s coredns $PROGRAMS; do ln -sfn "$KUBE/$p" "bin/$p"; done
for p in provisioner mkpki mkimage pause; do ln -sfn "$TOOLS/$p" "bin/$p"; done
[ images/pause.tar -nt "$TOOLS/pause" ] || bin/mkimage -o images/pause.tar -t localhost/pause:1 -entrypoint /pause bin/pause:/pause
