#!/bin/bash
# verify.sh   fails when a generated file is not what its source gives, or when gofmt, go vet or go mod tidy object
set -euo pipefail
. "$(dirname "$0")/lib.sh"
bad=0
complain() { echo "verify: $*" >&2; bad=1; }

step "gofmt"
unformatted=$(git ls-files -co --exclude-standard -- '*.go' | xargs -r -d '\n' sh -c 'for f; do [ ! -f "$f" ] || echo "$f"; done' sh | xargs -r -d '\n' gofmt -l)
[ -z "$unformatted" ] || complain "not gofmt-ed (make fmt): $unformatted"

step "generated files"
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
# in a copy, so that nothing here changes and files not committed yet count
git ls-files -co --exclude-standard | while IFS= read -r f; do [ ! -f "$f" ] || printf '%s\0' "$f"; done | tar -c --null -T - | tar -x -C "$tmp"
hack/generate.sh code "$tmp"
hack/generate.sh manifests "$tmp"
for f in $(cd "$tmp" && find . -type f | sed 's,^\./,,'); do
  cmp -s "$f" "$tmp/$f" || { complain "$f is not what its source generates (make generate manifests)"; diff -u "$f" "$tmp/$f" | head -n 20 || true; }
done

step "go vet"
go vet -tags e2e,mutants ./... || complain "go vet objects"
(cd hack/lab && go vet ./cmd/mkimage ./cmd/mkpki ./cmd/pause) || complain "go vet objects to hack/lab"
for module in hack/bench test/alerts; do (cd "$module" && go vet ./...) || complain "go vet objects to $module"; done

step "go mod tidy"
go mod tidy -diff || complain "go.mod is not tidy (go mod tidy)"
for module in hack/bench test/alerts; do (cd "$module" && go mod tidy -diff) || complain "$module/go.mod is not tidy (cd $module && go mod tidy)"; done
for s in hack/*.sh hack/lab/*.sh hack/lab/lib/*.sh .ci/run; do bash -n "$s" || complain "$s has a syntax error"; done
step "done"
exit $bad
