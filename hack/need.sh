#!/bin/bash
# need.sh [--list] PROGRAM:PACKAGE...   installs the Debian packages of programs that are missing, or only lists them
set -euo pipefail
HERE=$(cd "$(dirname "$0")/lab" && pwd)
. "$HERE/lib/common.sh"
. "$HERE/lib/packages.sh"
if [ "${1:-}" = --list ]; then shift; missing "$@"; exit; fi
[ "$(id -u)" = 0 ] || die "needed and missing, and only root can install them: $(missing "$@" | xargs)"
need_packages "$@"
