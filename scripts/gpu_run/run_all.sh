#!/usr/bin/env bash
# Tests and measures on this machine's GPU with what lies beside this file, in
# less than ten minutes, and writes results.json and results.log. --help lists
# the options.
set -euo pipefail

exec python3 "$(dirname "${BASH_SOURCE[0]}")/run_all.py" "$@"
