#!/usr/bin/env bash
# Installs what is missing to build, train and test on Debian 12, with apt.
#
#   scripts/install_deps.sh            to build, train and test
#   scripts/install_deps.sh --checks   also what scripts/check.sh needs
#   scripts/install_deps.sh --peers    also what bench.sh --peers builds with
#   scripts/install_deps.sh --full     also what test.sh --full starts
#
# Does nothing, and asks the network for nothing, when all is there.
set -euo pipefail

# Each with its reason; third_party/BUILD names the libraries.
packages=(
  bazel-bootstrap         # the build tool
  g++                     # the compiler
  protobuf-compiler       # protoc
  protobuf-compiler-grpc  # its gRPC plugin
  libprotobuf-dev
  libgrpc++-dev           # transport
  libabsl-dev             # Status, Mutex, flags, strings
  libspdlog-dev           # logging
  libdnnl-dev             # oneDNN: the cpu backend
  libcpp-httplib-dev      # HTTP heads, for a ps's page and metrics
  libhwy-dev              # Highway: vector loops, dispatched at run time
  libisal-dev             # CRC-32C of checkpoints and records
  zlib1g-dev              # gzip data sets
  libturbojpeg0-dev       # JPEG: scaled decoding, errors that do not exit
  libspng-dev             # PNG: limits on images and chunks
  libgtest-dev            # tests
  libgmock-dev            # tests
  libbenchmark-dev        # micro-benchmarks
  dataset-fashion-mnist   # the default data
  python3                 # the launcher and the integration tests
  python3-venv            # tests that give our files to readers from PyPI
  iproute2                # the tests that cut connections and make networks
  openssl                 # certificates for tests and the benchmark of TLS
  strace                  # the test of disks that fail
  libfaketime             # the test of clocks that jump
  patchelf                # package.sh: programs that find libraries beside them
  systemd                 # systemd-analyze: checks of unit files
)
checks=(
  clang            # thread-safety analysis, headers that compile alone
  clang-format     # layout
  libclang-rt-dev  # the sanitizers
  lld              # links their programs
)
peers=(
  libzmq3-dev  # the transport of ps-lite
  libgloo-dev  # the all-reduce of PyTorch over TCP
)
full=(
  openssh-server  # sshd, for scripts/muster run
  slurmctld       # Slurm, for scripts/muster task
  slurmd
  slurm-client
  munge
  bible-kjv       # a text, for worker/python/examples/transformer.py
  bible-kjv-text
  prometheus      # promtool, and who scrapes a ps
  chromium        # who reads its page
  mmdebstrap      # an empty Debian, and an image of it, for the package
  buildah
)

case "${1-}" in
  "") ;;
  --checks) packages+=("${checks[@]}") ;;
  --peers) packages+=("${peers[@]}") ;;
  --full) packages+=("${full[@]}") ;;
  --help | -h)
    sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//;p}' "$0"
    exit 0
    ;;
  *)
    echo "install_deps.sh: unknown argument '$1' (wanted --checks, --peers, --full or none)" >&2
    exit 2
    ;;
esac

# The names of packages that are not fully installed.
missing_packages() {
  local installed
  installed=$(dpkg-query -W -f='${db:Status-Abbrev} ${Package}\n' \
    "${packages[@]}" 2>/dev/null | sed -n 's/^ii *//p' || true)
  local package
  for package in "${packages[@]}"; do
    grep -qxF -- "$package" <<<"$installed" || echo "$package"
  done
}

if ! command -v dpkg-query >/dev/null; then
  echo "install_deps.sh: this is not Debian; install by hand:" \
    "${packages[*]}" >&2
  exit 1
fi

mapfile -t missing < <(missing_packages)
if [ "${#missing[@]}" = 0 ]; then
  exit 0
fi

sudo=()
if [ "$(id -u)" != 0 ]; then
  if ! command -v sudo >/dev/null; then
    echo "install_deps.sh: needs root to install: ${missing[*]}" >&2
    echo "install_deps.sh: as root, run: apt-get install ${missing[*]}" >&2
    exit 1
  fi
  sudo=(sudo)
fi

echo "install_deps.sh: installing ${missing[*]}"
run_apt() {
  "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq \
    -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3 "$@" </dev/null
}
run_apt update
run_apt install -y --no-install-recommends "${missing[@]}"

mapfile -t missing < <(missing_packages)
if [ "${#missing[@]}" != 0 ]; then
  echo "install_deps.sh: still not installed: ${missing[*]}" >&2
  exit 1
fi
echo "install_deps.sh: done"
