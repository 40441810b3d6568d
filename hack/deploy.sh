#!/bin/bash
# deploy.sh [crd]   installs or upgrades the operator with its chart, or the CRD only
set -euo pipefail
. "$(dirname "$0")/lib.sh"
target_cluster
if [ "${1:-}" = crd ]; then
  kubectl apply --server-side --force-conflicts -f config/crd/bases
  exit
fi
ref=$(image_ref)
# With make install the CRD is there already and not the release's; the chart's copy is the same, so it takes it over.
helm upgrade --install tidemark charts/tidemark --namespace "$NAMESPACE" --create-namespace --take-ownership \
  --set "image.repository=${ref%:*},image.tag=${ref##*:}" --wait --timeout 120s >/dev/null || {
  kubectl -n "$NAMESPACE" get pods -o wide
  kubectl -n "$NAMESPACE" get events --sort-by=.lastTimestamp | tail -n 10
  fail "the operator did not become ready; the events above say why"
}
step "operator of $ref is ready in namespace $NAMESPACE"
