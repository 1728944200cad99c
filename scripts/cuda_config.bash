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
# what the build wants of NVIDIA, unless the arguments say --gpus=none.
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
  has_cuda_toolkit || return 0
  echo --config=cuda
}
