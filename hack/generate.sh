#!/bin/bash
# generate.sh code|manifests [ROOT]   writes what is generated: deep copies; or CRD and role, also into the chart, and of the
#   chart its README's table, config/operator and dist/install.yaml
set -euo pipefail
. "$(dirname "$0")/lib.sh"
what=${1:?code or manifests}
[ $# -lt 2 ] || cd "$2"
CRD=config/crd/bases/tidemark.io_replicatedpartitions.yaml

code() {
  go tool controller-gen object paths=./api/...
  go generate ./...
}

manifests() {
  go tool controller-gen crd paths=./api/... output:crd:artifacts:config=config/crd/bases
  [ ! -d controllers ] || go tool controller-gen rbac:roleName=tidemark-operator paths=./controllers/... output:rbac:artifacts:config=config/rbac
  [ ! -d charts/tidemark/templates ] || chart_crd >charts/tidemark/templates/crd.yaml
  [ ! -d charts/tidemark/templates ] || chart
}

# chart   what follows from the chart. Helm is the lab's, which every developer has, at one version.
chart() {
  local helm=$ROOT/hack/lab/bin/helm
  [ -x "$helm" ] || fail "there is no $helm; make lab builds it"
  go run ./hack/chart readme charts/tidemark
  "$helm" template tidemark charts/tidemark --namespace tidemark-system --skip-tests | go run ./hack/chart manifests
}

# chart_crd   the same CRD as a template: optional, and kept when the release goes, since every partition goes with it
chart_crd() {
  ! grep -q '{{' "$CRD" || fail "$CRD contains {{, which Helm would take for its own"
  echo '{{- if .Values.crd.enabled }}'
  awk '{ print } /^  annotations:$/ && !done { print "    helm.sh/resource-policy: keep"; done = 1 }' "$CRD"
  echo '{{- end }}'
}

"$what"
