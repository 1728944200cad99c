#!/usr/bin/env bash
# Makes the folder that a machine with a GPU needs to test and measure Muster,
# without building or installing anything there, and packs it.
# scripts/gpu_bundle.sh --help lists the options.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/run_program.bash"
source "$(dirname "${BASH_SOURCE[0]}")/cuda_config.bash"

before_build() {
  has_cuda_toolkit && return
  echo "gpu_bundle: wanted nvcc on PATH or in /usr/local/cuda/bin," \
    "cublasLt.h, cudnn.h and nccl.h; install the CUDA toolkit, cuDNN and NCCL, or give" \
    "--no_build" >&2
  exit 1
}

tests="//tests/worker/backend/cuda:gpu_tests"
run_program gpu_bundle.py "--config=cuda //worker //ps_server $tests" "$@"
