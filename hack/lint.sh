#!/bin/bash
# lint.sh [ARGS]   golangci-lint at a pinned version, built once from source and kept outside of the repository
set -euo pipefail
. "$(dirname "$0")/lib.sh"
VERSION=v2.15.0
BIN=${TOOLS_CACHE:-${HOME:?set HOME or TOOLS_CACHE}/.cache/tidemark-tools}/golangci-lint-$VERSION-$(go env GOVERSION)
if [ ! -x "$BIN/golangci-lint" ]; then
  step "building golangci-lint $VERSION: about 2 minutes on 2 cores, only once"
  GOBIN=$BIN go install "github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$VERSION" 2>&1 | grep -v '^go: downloading' || true
  [ -x "$BIN/golangci-lint" ] || fail "golangci-lint could not be built; is the Go module proxy reachable (go env GOPROXY)?"
fi
step "golangci-lint"
"$BIN/golangci-lint" run "$@" ./...
for module in hack/bench test/alerts; do (cd "$module" && "$BIN/golangci-lint" run "$@" ./...); done
step "no complaints"
