#!/bin/bash
# bench.sh [FLAGS]   builds and runs hack/bench: the whole system, beside what the machine can do and beside its peers.
#                    hack/bench/README.md says what it measures; -h lists the flags
set -euo pipefail
. "$(dirname "$0")/lib.sh"
BIN=$ROOT/bin/bench
step "building hack/bench" >&2
(cd hack/bench && go build -o "$BIN/" . ./cmd/replica)
nats=()
if [[ " $* " == *nats* || " $* " == *" -full "* ]]; then
  (cd hack/bench && go build -o "$BIN/" github.com/nats-io/nats-server/v2)
  nats=(-nats="$BIN/nats-server")
fi
exec "$BIN/bench" -replica="$BIN/replica" -kafka="$ROOT/hack/kafka.sh" "${nats[@]}" "$@"
