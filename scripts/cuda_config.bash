# Sourced by the scripts that build with CUDA.

has_cuda_toolkit() {
  command -v nvcc >/dev/null || [ -x /usr/local/cuda/bin/nvcc ]
}

# cuda_config [ARGUMENT...]: prints --config=cuda if this machine has a GPU and
# the CUDA toolkit, unless the arguments say --gpus=none.
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
