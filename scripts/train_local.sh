#!/usr/bin/env bash
# Trains on this machine: installs what is missing, builds, and starts one ps
# and two worker tasks. scripts/train_local.sh --help lists the options.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

build=yes
for argument in "$@"; do
  case "$argument" in
    --help | -h)
      exec python3 "$root/scripts/launcher.py" --help
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
exec python3 "$root/scripts/launcher.py" "$@"
