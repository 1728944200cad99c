#!/usr/bin/env bash
# Tests and measures on this machine's GPU with what lies beside this file, in
# at most ten minutes, and writes results.json. --help lists the options.
set -euo pipefail

exec python3 "$(dirname "${BASH_SOURCE[0]}")/run_all.py" "$@"
