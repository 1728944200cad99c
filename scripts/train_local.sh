#!/usr/bin/env bash
# Trains on this machine: installs what is missing, builds, and starts one ps
# and two worker tasks. scripts/train_local.sh --help lists the options.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/run_program.bash"
source "$(dirname "${BASH_SOURCE[0]}")/cuda_config.bash"

run_program launcher.py "$(cuda_config "$@") //ps_server //worker" "$@"
