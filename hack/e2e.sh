#!/bin/bash
# e2e.sh [bench]   the end-to-end tests, or the failover benchmarks, on a local cluster that is up
#   TESTS=REGEXP chooses among them, RUNS (10) says how often a benchmark repeats its failure, OUTAGE (30s) how long the
#   API server is away, TIMEOUT (40m) when all of it is given up.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
[ -z "$CONTEXT" ] || fail "these tests take power from nodes and stop the API server; they run on the local cluster only, so unset CONTEXT"
need kcat:kcat /usr/lib/python3/dist-packages/kafka:python3-kafka
target_cluster
# one run at a time: the tests take power from nodes that another run would be using
exec 8>/run/lock/tidemark-lab-e2e.lock
flock -n 8 || { step "another run is using the cluster; waiting for it"; flock 8; }
step "installing Tidemark"
hack/deploy.sh
step "running"
export TIDEMARK_LAB=$LAB_SH TIDEMARK_OUTAGE=${OUTAGE:-30s}
# compiled outside, run with the cluster's DNS
flags=(-tags e2e -count=1 -timeout "${TIMEOUT:-40m}" -exec "$LAB_SH run")
if [ "${1:-}" = bench ]; then
  exec go test "${flags[@]}" -run '^$' -bench "${TESTS:-.}" -benchtime "${RUNS:-10}x" -v ./test/e2e
fi
exec go test "${flags[@]}" -v -run "${TESTS:-.}" ./test/e2e
