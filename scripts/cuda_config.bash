# Sourced by train_local.sh.

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
  command -v nvcc >/dev/null || [ -x /usr/local/cuda/bin/nvcc ] || return 0
  echo --config=cuda
}
