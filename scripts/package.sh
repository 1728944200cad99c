#!/usr/bin/env bash
# Makes one tar of Muster to unpack anywhere on a Linux machine (x86-64, glibc
# 2.36 or newer: Debian 12), or, as `scripts/package.sh wheel`, a wheel for
# Python. --help lists the options of each.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/run_program.bash"

if [ "${1-}" = wheel ]; then
  shift
  run_program wheel.py \
    "//ps_server //worker/ctl:musterctl_light //worker/python:libmuster.so" "$@"
fi
run_program package.py \
  "//ps_server //worker //worker/ctl:musterctl //worker/python:libmuster.so" "$@"
