#!/usr/bin/env bash
# Makes one tar of Muster to unpack anywhere on a Linux machine (x86-64, glibc
# 2.36 or newer: Debian 12). scripts/package.sh --help lists the options.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/run_program.bash"

run_program package.py "//ps_server //worker //worker/ctl:musterctl" "$@"
