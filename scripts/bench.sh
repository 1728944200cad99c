#!/usr/bin/env bash
# Measures this machine: installs what is missing, builds, and trains the MNIST
# CNN in several shapes. scripts/bench.sh --help lists the options.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
case "${1-}" in
  --help | -h) exec python3 "$root/scripts/bench.py" --help ;;
esac
"$root/scripts/install_deps.sh"
(cd "$root" && bazel build //ps_server //worker </dev/null)
exec python3 "$root/scripts/bench.py" "$@"
