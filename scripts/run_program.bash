# Sourced by the scripts that run a Python program with built binaries.
scripts=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

# What is better found wrong before minutes of building; gets the arguments.
before_build() { :; }

# run_program PROGRAM TARGETS [ARGUMENT...]: becomes PROGRAM, a file here, with
# the arguments. Installs what is missing and builds the TARGETS (one string)
# first, unless told --no_build; --help only shows PROGRAM's.
run_program() {
  local program=$scripts/$1 argument build=yes
  local -a targets
  read -ra targets <<<"$2"
  shift 2
  for argument in "$@"; do
    case "$argument" in
      --help | -h) exec python3 "$program" --help ;;
      --no_build) build=no ;;
    esac
  done
  if [ "$build" = yes ]; then
    "$scripts/install_deps.sh"
    before_build "$@"
    (cd "$scripts/.." && bazel build "${targets[@]}" </dev/null)
  fi
  # Ctrl-C waits until Python is up: quiet_interrupt.py.
  exec env --block-signal=INT python3 "$program" "$@"
}
