#!/usr/bin/env bash
# Measures this machine: installs what is missing, builds, and prints a table of
# figures with their targets. scripts/bench.sh --help lists the options.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

build=yes
for argument in "$@"; do
  case "$argument" in
    --help | -h)
      exec python3 "$root/scripts/bench.py" --help
      ;;
    --no_build)
      build=no
      ;;
  esac
done

if [ "$build" = yes ]; then
  "$root/scripts/install_deps.sh"
  # A mistake in a flag must not be told after minutes of building.
  python3 "$root/scripts/bench.py" --check_flags "$@"
  (cd "$root" &&
    bazel build //ps_server //worker //tests/benchmark/data_plane </dev/null)
fi
exec python3 "$root/scripts/bench.py" "$@"
