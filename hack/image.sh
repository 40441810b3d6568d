#!/bin/bash
# image.sh   builds the two static binaries and packs them into one image, without Docker. A running lab gets it at once.
# The image has two names: localhost/tidemark:dev, and one that names its content, which is what is deployed: so a
# changed image is a changed name, and pods are replaced.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
mkdir -p dist hack/lab/images
step "building manager and replica"
for b in manager replica; do
  go build -ldflags "-s -w" -o "dist/$b" "./cmd/$b"
done
(cd hack/lab && go build -o "$ROOT/dist/mkimage" ./cmd/mkimage)
ref=localhost/tidemark:dev-$(cat dist/manager dist/replica | sha256sum | cut -c1-12)
dist/mkimage -o hack/lab/images/tidemark.tar -t "localhost/tidemark:dev,$ref" -user 65532:65532 dist/manager:/manager dist/replica:/replica
echo "$ref" >dist/image.ref
step "image $ref: hack/lab/images/tidemark.tar, $(($(stat -c %s hack/lab/images/tidemark.tar) >> 20)) MiB"
if [ "$(id -u)" = 0 ] && "$LAB_SH" status >/dev/null 2>&1; then
  "$LAB_SH" load hack/lab/images/tidemark.tar
  step "loaded into the lab's nodes"
fi
