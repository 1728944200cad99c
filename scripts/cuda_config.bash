# Sourced by the scripts that build with CUDA.

# What the build wants of NVIDIA: a compiler, and headers in the toolkit or, as
# from cuDNN's and NCCL's own packages, the system's.
has_cuda_toolkit() {
  local header
  command -v nvcc >/dev/null || [ -x /usr/local/cuda/bin/nvcc ] || return
  for header in cublasLt.h cudnn.h nccl.h; do
    [ -e "/usr/local/cuda/include/$header" ] ||
      [ -e "/usr/include/$header" ] ||
      [ -e "/usr/include/x86_64-linux-gnu/$header" ] || return
  done
}

# cuda_config [ARGUMENT...]: prints --config=cuda if this machine has a GPU and
# what the build wants of NVIDIA, unless the arguments say --gpus=none. One line
# to stderr if there is a GPU and the rest is missing.
cuda_config() {
  local argument previous=
  for argument in "$@"; do
    case "$previous$argument" in
      --gpus=none | --gpusnone) return 0 ;;
    esac
    previous=
    [ "$argument" != --gpus ] || previous=--gpus
  done
  nvidia-smi -L >/dev/null 2>&1 || [ -e /dev/nvidia0 ] || return 0
  if ! has_cuda_toolkit; then
    echo "cuda_config: there is a GPU, but no nvcc on PATH or in" \
      "/usr/local/cuda/bin, or not all of cublasLt.h, cudnn.h and nccl.h:" \
      "building without CUDA; install the CUDA toolkit, cuDNN and NCCL" >&2
    return 0
  fi
  echo --config=cuda
}
