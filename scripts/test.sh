#!/usr/bin/env bash
# Installs what is missing, builds all, runs all tests, and ends with the line
# "N passed, M failed" (test cases, not Bazel's targets). Exits with 0 only if
# nothing failed.
#
#   scripts/test.sh [--summary FILE] [BAZEL_TEST_ARGUMENT...]
#
# --summary FILE also writes the last line there. Other arguments go to
# `bazel test`; without a target among them it tests //... .
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"

summary=
arguments=()
targets=()
while [ $# -gt 0 ]; do
  case "$1" in
    --help | -h)
      sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//;p}' "$0"
      exit 0
      ;;
    --summary)
      summary=${2:?test.sh: --summary wants a file}
      shift
      ;;
    --*) arguments+=("$1") ;;
    *) targets+=("$1") ;;
  esac
  shift
done
[ "${#targets[@]}" -gt 0 ] || targets=(//...)

scripts/install_deps.sh
events=$(mktemp)
trap 'rm -f "$events"' EXIT

# --keep_going: one broken target must not hide the others' results. The code
# is judged by count_tests.py, which sees every target.
started=$SECONDS
bazel_status=0
bazel test --keep_going --build_event_json_file="$events" \
  --noshow_progress "${arguments[@]}" -- "${targets[@]}" </dev/null ||
  bazel_status=$?
echo
echo "test.sh: build and tests took $((SECONDS - started)) s"
status=0
report=$(python3 scripts/count_tests.py "$events" "$bazel_status") || status=$?
[ -z "$summary" ] || tail -n 1 <<<"$report" >"$summary"
echo "$report"
exit "$status"
