#!/bin/bash
# explore.sh   every state of small partitions: the bounds of internal/explore/README.md, one after the other.
#   MAX_TIME=5m   ends each of them after that time.
set -euo pipefail
cd "$(dirname "$0")/.."

export GOMAXPROCS=1 GOGC=200
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
go build -o "$tmp/explore" ./internal/explore/cmd

explore() {
  echo "== $*"
  "$tmp/explore" -max-time "${MAX_TIME:-5m}" "$@"
}

explore -replicas 2 -min-isr 1 -records 2 -elections 2 -changes 5 -crashes 1 -machine-crashes 1 -fetching 1
explore -replicas 2 -min-isr 1 -records 2 -elections 2 -changes 4 -crashes 1 -machine-crashes 1
explore -replicas 2 -min-isr 1 -records 3 -elections 3 -changes 4
explore -replicas 2 -min-isr 1 -records 2 -elections 2 -changes 3 -fetching 1 -undecided
explore -replicas 2 -min-isr 1 -records 2 -elections 3 -changes 3 -fetching 2 -every-version -only-elections
explore -replicas 2 -min-isr 2 -records 2 -elections 2 -changes 4 -crashes 1 -machine-crashes 1 -every-batch -stale-checkpoint
explore -replicas 3 -min-isr 2 -records 1 -elections 1 -changes 3
explore -replicas 3 -min-isr 2 -records 1 -elections 1 -changes 2 -machine-crashes 1
explore -replicas 3 -min-isr 2 -records 2 -elections 3 -changes 3 -only-elections
explore -replicas 3 -min-isr 2 -records 1 -elections 2 -changes 3
