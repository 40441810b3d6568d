# Shared by the scripts in this folder. Sourced, never run; the caller has set -euo pipefail.

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
LAB_SH=$ROOT/hack/lab/cluster.sh
NAMESPACE=${NAMESPACE:-tidemark-system}
CONTEXT=${CONTEXT:-}
# One set of flags for image, vet, lint and generators, so that they compile every package once for all of them. Only the
# tests differ: the race detector needs cgo.
export CGO_ENABLED=0 GOFLAGS="-trimpath -buildvcs=false"
cd "$ROOT"

now_ms() { echo $(($(date +%s%N) / 1000000)); }
T_START=$(now_ms)
# step TEXT   a line with the seconds since the script began
step() { printf '%7.1f s  %s\n' "$(($(now_ms) - T_START))e-3" "$*"; }
fail() { printf 'error: %s\n' "$*" >&2; exit 1; }

# need PROGRAM:PACKAGE...   installs Debian packages that are missing, where root and apt-get are there, else names them
need() {
  local lack
  lack=$("$ROOT/hack/need.sh" --list "$@")
  [ -z "$lack" ] || "$ROOT/hack/need.sh" "$@"
}

# target_cluster   makes kubectl and helm speak to the cluster that CONTEXT names, or to the lab
target_cluster() {
  if [ -z "$CONTEXT" ]; then
    eval "$("$LAB_SH" env)"
    [ -f "$KUBECONFIG" ] || fail "no cluster is up; make cluster-up starts one, CONTEXT=name uses one of yours"
    return
  fi
  command -v kubectl >/dev/null || fail "CONTEXT is set, so your own kubectl is used, and there is none in PATH"
  command -v helm >/dev/null || fail "CONTEXT is set, so your own helm is used, and there is none in PATH (3.17 or newer)"
  command kubectl --context "$CONTEXT" version >/dev/null || fail "kubectl cannot reach the cluster of context $CONTEXT"
  kubectl() { command kubectl --context "$CONTEXT" "$@"; }
  helm() { command helm --kube-context "$CONTEXT" "$@"; }
}

# image_ref   the image to deploy: what the user names, else what was built last, by its content
image_ref() {
  if [ -n "${IMAGE:-}" ]; then echo "$IMAGE"; return; fi
  [ -z "$CONTEXT" ] || fail "CONTEXT=$CONTEXT needs an image that its nodes can pull: docker build -t REGISTRY/tidemark:TAG . && docker push REGISTRY/tidemark:TAG, then give IMAGE=REGISTRY/tidemark:TAG"
  cat dist/image.ref 2>/dev/null || fail "no image has been built; make image"
}
