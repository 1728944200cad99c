#!/usr/bin/env bash
# Measures every way of replication on this machine, and makes README.md beside
# it: installs what is missing, builds, trains. study.sh --help lists the
# options.
set -euo pipefail
folder=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$folder/../../.." && pwd)
export PYTHONPATH=$root PYTHONDONTWRITEBYTECODE=1

build=yes
for argument in "$@"; do
  case "$argument" in
    --help | -h | --no_build | --report_only)
      build=no
      ;;
  esac
done

if [ "$build" = yes ]; then
  "$root/scripts/install_deps.sh"
  (cd "$root" && bazel build //ps_server //worker </dev/null)
fi
exec python3 -m tests.benchmark.replication.study "$@"
