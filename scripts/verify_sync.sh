#!/usr/bin/env bash
# Shows that sync replication of N workers with batches of b rows is one process
# with batches of N*b: installs what is missing, builds, and trains both ways
# with each update rule. scripts/verify_sync.sh --help lists the options.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/run_program.bash"

run_program ../tests/integration/verify_sync.py "//ps_server //worker" "$@"
