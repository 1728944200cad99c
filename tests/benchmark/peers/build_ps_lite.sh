#!/usr/bin/env bash
# Builds ps_lite.cc with BytePS's fork of ps-lite, and prints where the program
# is: in the user's cache folder, once for each text of ps_lite.cc. The fork is
# in BytePS's source package on PyPI, of which nothing is run; its transport is
# Debian's ZeroMQ.
set -euo pipefail
peers=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$peers/../../.." && pwd)
package=byteps-0.2.5.post15
package_sha256=9d6a3c5be4c4b5a172739744bb32725c433f9a9f63794e1885e7376ff4eea99f

cache=${XDG_CACHE_HOME:-$HOME/.cache}/muster
key=$(cat "$peers/ps_lite.cc" "${BASH_SOURCE[0]}" | sha256sum | cut -c 1-16)
program=$cache/ps_lite-$key
if [ -x "$program" ]; then
  echo "$program"
  exit 0
fi

"$root/scripts/install_deps.sh" --peers >&2
python=$(python3 "$root/scripts/base/python_environment.py" \
  "$peers/ps_lite_requirements.txt")
mkdir -p "$cache"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# pip would run the package's own set-up to learn its name.
"$python" -m unearth --no-binary --download "$work" "${package/-/==}" \
  >"$work/unearth.json"
echo "$package_sha256  $work/$package.tar.gz" | sha256sum --check --quiet >&2
tar -xzf "$work/$package.tar.gz" -C "$work" "$package/3rdparty/ps-lite"
fork=$work/$package/3rdparty/ps-lite
# Optimized as in the fork's own Makefile.
g++ -std=c++14 -O3 -finline-functions -w \
  -I"$fork/include" -I"$fork/src" -o "$work/ps_lite" "$peers/ps_lite.cc" \
  "$fork"/src/{customer,postoffice,van}.cc -lzmq -pthread
mv "$work/ps_lite" "$program"
echo "$program"
