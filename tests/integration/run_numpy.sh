#!/usr/bin/env bash
# Runs one test program, a module below the runfiles' root, in a Python that has
# NumPy, with the package muster of this build. A file of requirements may follow
# that the Python has as well.
set -euo pipefail
python=$(python3 scripts/base/python_environment.py ${2:+"$PWD/$2"})
export PYTHONPATH=$PWD:$PWD/worker/python PYTHONDONTWRITEBYTECODE=1
exec "$python" -m "$1"
