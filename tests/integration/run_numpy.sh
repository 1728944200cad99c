#!/usr/bin/env bash
# Runs one test program, a module below the runfiles' root, in a Python that has
# NumPy, with the package muster of this build.
set -euo pipefail
python=$(python3 scripts/base/python_environment.py)
export PYTHONPATH=$PWD:$PWD/worker/python PYTHONDONTWRITEBYTECODE=1
exec "$python" -m "$1"
