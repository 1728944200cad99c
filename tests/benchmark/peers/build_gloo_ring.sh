#!/usr/bin/env bash
# Builds gloo_ring.cc with Debian's Gloo, and prints where the program is: in the
# user's cache folder, once for each text of gloo_ring.cc.
set -euo pipefail
peers=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$peers/../../.." && pwd)

cache=${XDG_CACHE_HOME:-$HOME/.cache}/muster
key=$(cat "$peers/gloo_ring.cc" "${BASH_SOURCE[0]}" | sha256sum | cut -c 1-16)
program=$cache/gloo_ring-$key
if [ -x "$program" ]; then
  echo "$program"
  exit 0
fi

"$root/scripts/install_deps.sh" --peers >&2
mkdir -p "$cache"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
g++ -std=c++17 -O3 -o "$work/gloo_ring" "$peers/gloo_ring.cc" -lgloo -pthread
mv "$work/gloo_ring" "$program"
echo "$program"
