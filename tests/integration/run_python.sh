#!/usr/bin/env bash
# Runs one test program, a module below the runfiles' root.
set -euo pipefail
export PYTHONPATH=$PWD PYTHONDONTWRITEBYTECODE=1
exec python3 -m "$1"
