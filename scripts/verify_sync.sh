#!/usr/bin/env bash
# Shows that sync replication of N workers with batches of b rows is one process
# with batches of N*b: installs what is missing, builds, and trains both ways
# with each update rule. scripts/verify_sync.sh --help lists the options.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

build=yes
for argument in "$@"; do
  case "$argument" in
    --help | -h)
      exec python3 "$root/scripts/verify_sync.py" --help
      ;;
    --no_build)
      build=no
      ;;
  esac
done

if [ "$build" = yes ]; then
  "$root/scripts/install_deps.sh"
  (cd "$root" && bazel build //ps_server //worker </dev/null)
fi
exec python3 "$root/scripts/verify_sync.py" "$@"
