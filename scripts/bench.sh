#!/usr/bin/env bash
# Measures this machine: installs what is missing, builds, and prints a table of
# figures with their targets. scripts/bench.sh --help lists the options.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/run_program.bash"

# A mistake in a flag must not be told after minutes of building.
before_build() { python3 "$scripts/bench.py" --check_flags "$@"; }

run_program bench.py "//ps_server //worker //worker/python:libmuster.so \
//tests/benchmark/data_plane //tests/benchmark/rows" "$@"
