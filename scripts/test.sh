#!/usr/bin/env bash
# Installs what is missing, builds all, runs all tests, lists those that were
# skipped, with the reason, and ends with the line "N passed, M failed", or
# "N passed, M failed, K skipped" (test cases, not Bazel's targets). Exits with 0
# only if nothing failed.
#
#   scripts/test.sh [--soak] [--full] [--link grpc|tcp|shared_memory]
#                   [--summary FILE] [BAZEL_TEST_ARGUMENT...]
#
# --soak runs the tests of recovery with the full counts of kills, the hostile
# peer for its full time, and all that has limits by the wall clock, and without a
# target only those, after 100,000 seeds of the simulation. --full, by hand, runs the tests that are too long for every
# change, and without a target only those: whole data sets in the files of others'
# programs, from PyPI; real sshd, Slurm and images. --link makes workers use this
# link to the ps tasks, and without a target tests //tests/integration:all .
# --summary FILE also writes the last line there. Other arguments go to `bazel
# test`; without a target among them it tests //... .
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"

summary=
soak=
full=
link=
arguments=()
targets=()
while [ $# -gt 0 ]; do
  case "$1" in
    --help | -h)
      sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//;p}' "$0"
      exit 0
      ;;
    --soak) soak=yes ;;
    --full) full=yes ;;
    --link)
      link=${2:?test.sh: --link wants grpc, tcp or shared_memory}
      case "$link" in
        grpc | tcp | shared_memory) ;;
        *)
          echo "test.sh: --link wants grpc, tcp or shared_memory, found '$link'" >&2
          exit 2
          ;;
      esac
      shift
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
simulate=
given=${#targets[@]}
if [ -n "$soak" ]; then
  # Shown as they come: a soak is looked at while it runs.
  arguments+=(--test_env=MUSTER_SOAK=1 --nocache_test_results
    --test_output=all --test_timeout=3600)
  if [ "$given" -eq 0 ]; then
    simulate=yes
    targets=(//tests/full:torch_benchmark_test
      //tests/integration:broken_connection_test
      //tests/integration:clock_jump_test
      //tests/integration:hostile_peer_test
      //tests/integration:network_cut_test
      //tests/integration:overlap_test
      //tests/integration:recovery_signal_test
      //tests/integration:recovery_start_test //tests/integration:recovery_test
      //tests/integration:replication_speed_test
      //tests/integration:replication_test
      //tests/integration:row_coverage_test
      //tests/integration:shared_memory_test)
  fi
fi
# Tagged `full`, and `manual`: //... leaves them out.
full_targets=(
  //tests/full:data_formats_test
  //tests/full:diabetes_test
  //tests/full:imports_test
  //tests/full:package_test
  //tests/full:page_test
  //tests/full:python_examples_test
  //tests/full:slurm_test
  //tests/full:ssh_test
  //tests/full:torch_benchmark_test
  //tests/full:torch_tables_test
  //tests/full:torch_training_test
  //tests/full:typing_test
  //tests/worker/model:resnet_float64_test
  //tests/worker/python:torch_optimizer_test
  //tests/worker/python:torch_overlap_test
  //tests/worker/python:torch_shard_test
  //tests/worker/python:torch_tables_test
)
if [ -n "$full" ]; then
  arguments+=(--nocache_test_results --test_output=all --test_timeout=3600)
  [ "$given" -gt 0 ] || targets+=("${full_targets[@]}")
fi
if [ -n "$link" ]; then
  arguments+=("--test_env=MUSTER_LINK=$link")
  [ "${#targets[@]}" -gt 0 ] || targets=(//tests/integration:all)
fi
[ "${#targets[@]}" -gt 0 ] || targets=(//...)

scripts/install_deps.sh ${full:+--full}
# The packages of PyPI that some tests want, while the user's settings for pip
# and the network are at hand: Bazel gives its tests none of them. They come
# while others are built; a test that wants one waits for its lock. Where it
# fails, those tests do, and say why.
requirements=()
case "${targets[*]}" in
  *...* | *integration*)
    requirements+=(tests/integration/requirements.txt
      tests/integration/manifest_requirements.txt
      scripts/sweep/requirements.txt)
    ;;
esac
[ -z "$full" ] || requirements+=(tests/full/requirements.txt)
case "${targets[*]}" in
  *torch*) requirements+=(tests/benchmark/peers/torch_requirements.txt) ;;
esac
if [ "${#requirements[@]}" -gt 0 ]; then
  [ -z "${XDG_CACHE_HOME-}" ] ||
    arguments+=("--test_env=XDG_CACHE_HOME=$XDG_CACHE_HOME")
  for file in "${requirements[@]}"; do
    scripts/base/python_environment.py "$file" >/dev/null &
  done
fi
events=$(mktemp)
trap 'rm -f "$events"' EXIT

if [ -n "$simulate" ]; then
  bazel run --noshow_progress //tests/simulation:simulate -- --seeds=100000 \
    </dev/null
fi

# --keep_going: one broken target must not hide the others' results. The code
# is judged by count_tests.py, which sees every target.
started=$SECONDS
bazel_status=0
bazel test --keep_going --build_event_json_file="$events" \
  --noshow_progress "${arguments[@]}" -- "${targets[@]}" </dev/null ||
  bazel_status=$?
wait
echo
echo "test.sh: build and tests took $((SECONDS - started)) s"
status=0
report=$(python3 scripts/count_tests.py "$events" "$bazel_status") || status=$?
[ -z "$summary" ] || tail -n 1 <<<"$report" >"$summary"
echo "$report"
exit "$status"
