#!/usr/bin/env bash
# Measures every way of replication on this machine, and makes README.md beside
# it: installs what is missing, builds, trains. study.sh --help lists the
# options.
set -euo pipefail
folder=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
PYTHONPATH=$(cd "$folder/../../.." && pwd)
export PYTHONPATH PYTHONDONTWRITEBYTECODE=1
exec python3 -m tests.benchmark.replication.study "$@"
