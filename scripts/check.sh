#!/usr/bin/env bash
# Checks of the source that are no tests: layout, thread-safety analysis,
# headers that compile alone, forbidden patterns, sources that no test covers,
# limits of size, flags that the README names.
# Ends with "N passed, M failed".
#
#   scripts/check.sh [--summary FILE] [CHECK...]
#
# Checks: format thread_safety headers patterns limits readme (all by default).
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"

summary=
checks=()
while [ $# -gt 0 ]; do
  case "$1" in
    --help | -h)
      sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//;p}' "$0"
      exit 0
      ;;
    --summary)
      summary=${2:?check.sh: --summary wants a file}
      shift
      ;;
    format | thread_safety | headers | patterns | limits | readme) checks+=("$1") ;;
    *)
      echo "check.sh: unknown check '$1'" >&2
      exit 2
      ;;
  esac
  shift
done
[ "${#checks[@]}" -gt 0 ] ||
  checks=(format thread_safety headers patterns limits readme)

scripts/install_deps.sh --checks

# sources REGEX: our files whose names match.
sources() {
  find common ps_server worker tests -type f | grep -E "$1" | sort
}

check_format() {
  sources '\.(h|cc|cu|cuh)$' |
    xargs -n 100 -P "$(nproc)" clang-format --dry-run -Werror
}

# Headers that protoc makes; both analyses include them.
generate() {
  bazel build --noshow_progress --ui_event_filters=-info //proto/... \
    </dev/null >&2
}

compile_each() {
  xargs -P "$(nproc)" -I{} sh -c \
    'clang++ -std=c++17 -fsyntax-only -x c++ -I. -Ibazel-bin -Wall -Wextra \
       -Wno-sign-compare -Wthread-safety -Werror "$@" "{}" || exit 1' \
    compile "$@"
}

# Sources that can break a lock's rules: they, or a header of ours that they
# include, name one. (All sources would take
# ten times as long.)
sources_with_locks() {
  local lock='absl/(synchronization/mutex|base/thread_annotations)\.h' source
  for source in $(sources '^(common|ps_server|worker)/.*\.cc$'); do
    if {
      echo "$source"
      sed -n 's/^#include "\(.*\)"/\1/p' "$source"
    } | xargs grep -lsqE "$lock"; then
      echo "$source"
    fi
  done
}

check_thread_safety() {
  generate && sources_with_locks | compile_each
}

# A source whose first include is its own header shows, when the build compiles
# it, that the header compiles alone: nothing stands before it. That holds if a
# BUILD file lists the source, or has a unit or a test of its name.
built() {
  local file
  file=$(basename "$1")
  grep -sqE "\"${file%.cc}(\\.cc)?\"" "$(dirname "$1")/BUILD"
}

# Prints "built HEADER" or "alone HEADER" (nothing includes it first: to be
# compiled by itself), and "late SOURCE" for a source that has its own header,
# but not as its first include.
sort_headers() {
  local header stem source proven
  for header in $(sources '\.h$'); do
    stem=${header%.h}
    proven=alone
    for source in "$stem.cc" "tests/${stem}_test.cc"; do
      [ -f "$source" ] || continue
      if [ "$(grep -m 1 '^#include' "$source")" = "#include \"$header\"" ]; then
        built "$source" && proven=built
      elif grep -qF "#include \"$header\"" "$source"; then
        echo "late $source"
      fi
    done
    echo "$proven $header"
  done
}

# -inl.h files are included several times on purpose (Highway). The libraries'
# headers are parsed once, as in the build (third_party/precompiled.bzl).
check_headers() {
  local sorted late parsed failed=0
  sorted=$(sort_headers)
  late=$(sed -n 's/^late //p' <<<"$sorted")
  if [ -n "$late" ]; then
    printf 'check.sh: its own header is not the first include of:\n%s\n' "$late"
    return 1
  fi
  parsed=$(mktemp --suffix=.pch)
  generate && clang++ -std=c++17 -x c++-header -I. -o "$parsed" \
    -fpch-instantiate-templates third_party/test_headers.h &&
    sed -n 's/^alone //p' <<<"$sorted" | grep -v -- '-inl\.h$' |
    compile_each -include-pch "$parsed" -Wno-unused-const-variable \
      -Wno-unused-function || failed=1
  rm -f "$parsed"
  [ "$failed" -eq 0 ] || return 1
  echo "check.sh: each header compiles alone: $(grep -c '^built' <<<"$sorted")" \
    "by the build, $(grep '^alone' <<<"$sorted" | grep -cv -- '-inl\.h$') here"
}

# forbid WHAT REGEX ALLOWED_FILES: prints each match outside ALLOWED_FILES.
forbid() {
  local found
  found=$(sources '^(common|ps_server|worker)/.*\.(h|cc|cu)$' |
    xargs grep -nE -- "$2" | grep -vE -- "^($3):" || true)
  [ -z "$found" ] && return 0
  printf 'check.sh: %s:\n%s\n' "$1" "$found"
  return 1
}

# Sources with neither tests/<same path>_test.cc nor a line in the list, and
# lines of the list that name no such source or no test.
check_tested() {
  local list=tests/tested_elsewhere.txt source test bad=0
  for source in $(sources '^(common|ps_server|worker)/.*\.cc$'); do
    [ -f "tests/${source%.cc}_test.cc" ] && continue
    grep -qxF "$source" "$list" && continue
    echo "check.sh: $source has no tests/${source%.cc}_test.cc; write it, or" \
      "say in $list which test covers it"
    bad=1
  done
  for source in $(grep -E '^[^# ]' "$list"); do
    [ -f "$source" ] && [ ! -f "tests/${source%.cc}_test.cc" ] && continue
    echo "check.sh: $list names $source, which is gone or has its own test"
    bad=1
  done
  for test in $(sed -n 's/^    \([^:]*\): .*/\1/p' "$list" | sort -u); do
    [ -f "$test" ] && continue
    echo "check.sh: $list names the test $test, which is gone"
    bad=1
  done
  return "$bad"
}

# Targets with flags of their own, but for warnings, that are not among those
# that .bazelrc compiles without the precompiled header: g++ would take the
# header's flags instead, and say nothing.
check_own_flags() {
  local found
  found=$(sources '(^|/)BUILD$|\.bzl$' |
    xargs grep -nE '\bcopts = ' |
    grep -vE 'copts = \["-W[a-z-]+"\],|^(common/optimizer|worker/backend/cpu)/BUILD:' ||
    true)
  [ -z "$found" ] && return 0
  printf 'check.sh: copts; leave the sources out of the precompiled header %s\n%s\n' \
    '(.bazelrc), then name their folder here:' "$found"
  return 1
}

# Every unit lies in a room, and Bazel knows who may see the room
# (third_party/rooms.bzl): so no include goes up. What each binary begins with
# lies at the top of its house.
check_rooms() {
  local found bad=0
  found=$(find common ps_server worker -maxdepth 1 -name '*.cc' -o \
    -maxdepth 1 -name '*.h' |
    grep -vE '^(ps_server/(main|ps_task)|worker/(main|standalone_links|train|worker_process))\.' ||
    true)
  if [ -n "$found" ]; then
    printf 'check.sh: in no room (a folder of third_party/rooms.bzl):\n%s\n' \
      "$found"
    bad=1
  fi
  found=$(find common ps_server worker -name BUILD |
    xargs grep -LF 'default_visibility = seen_by()' || true)
  if [ -n "$found" ]; then
    printf 'check.sh: without package(default_visibility = seen_by()):\n%s\n' \
      "$found"
    bad=1
  fi
  return "$bad"
}

# Each file on a gradient's way exists, and has the function that it is named for.
check_way() {
  local file function bad=0
  while read -r file function; do
    grep -qsE "\\b$function\\(" "$file" && continue
    echo "check.sh: worker/client/README.md: $file has no $function()"
    bad=1
  done < <(sed -nE \
    's/^\| `([a-z_]+\/[a-z0-9_/]+\.(cc|h))` \| `([A-Za-z]+)` \|.*/\1 \3/p' \
    worker/client/README.md)
  return "$bad"
}

check_patterns() {
  local bad=0
  local flags='(ps_server/main|worker/train|worker/verb/\w+|common/rpc/server/task_flags)\.cc'
  forbid 'environment read outside the files of flags' '\bgetenv\(' \
    'common/process/environment\.h' || bad=1
  forbid 'flag read outside the files of flags' 'absl::GetFlag\(' \
    "$flags" || bad=1
  forbid 'std::mutex (use absl::Mutex)' \
    'std::(mutex|shared_mutex|condition_variable)\b' \
    '(worker/client/link/timer_queue|common/base/monotonic_wait)[^:]*' || bad=1
  # A wall clock that is set must not fire or hold up any timeout. Stamps for
  # people are what it is for, and the ends of certificates.
  forbid 'wait or deadline by the wall clock (use Clock)' \
    '\b((Await|Wait)With(Timeout|Deadline)\(|system_clock|GPR_CLOCK_REALTIME)' \
    'common/base/monotonic_wait[^:]*' || bad=1
  forbid 'wall clock (Clock is monotonic)' 'absl::Now\b' \
    '(common/summary/event_file|common/tls/task_keys|ps_server/http/looker|worker/checkpoint/model_saver)\.h' || bad=1
  forbid 'detached thread' '\.detach\(\)' 'none' || bad=1
  forbid 'sleep' '\b(sleep|usleep|sleep_for|SleepFor) *\(' 'none' || bad=1
  forbid 'using namespace' '^ *using namespace ' 'none' || bad=1
  forbid 'TODO without an issue number' '\b(TODO|FIXME|XXX)\b($|[^(]|\([^#])' \
    'none' || bad=1
  forbid 'device code outside worker/backend' '__global__|cuda_runtime\.h' \
    'worker/backend/[^:]*' || bad=1
  forbid 'CHECK or abort on input' '\bCHECK(_[A-Z]+)?\(|LOG\(FATAL\)' 'none' ||
    bad=1
  forbid 'ps_server seen by worker' '#include "ps_server/' \
    "ps_server/[^:]*|worker/worker_process\.cc" || bad=1
  forbid 'worker seen by ps_server or common' '#include "worker/' \
    'worker/[^:]*' || bad=1
  check_own_flags || bad=1
  check_rooms || bad=1
  check_tested || bad=1
  check_way || bad=1
  return "$bad"
}

# Subjects of commits before this one may be longer.
check_limits() {
  python3 scripts/limits.py --since=8fee9c3625fda1fa5cfc508dc2a71043f1438285
}

# Every --flag that the README names is in a binary's or a script's --help.
check_readme() {
  bazel build --noshow_progress --ui_event_filters=-info //ps_server //worker \
    </dev/null >&2 || return 1
  local help flag bad=0
  if [ "$(wc -l <README.md)" -gt 150 ]; then
    echo "check.sh: README.md has more than 150 lines"
    bad=1
  fi
  help=$(
    for program in bazel-bin/ps_server/ps_server bazel-bin/worker/worker \
      "bazel-bin/worker/worker evaluate" "bazel-bin/worker/worker predict" \
      "scripts/muster sweep" "scripts/muster ensemble" "scripts/muster run" \
      "scripts/muster certs issue" scripts/*.sh; do
      # A verb is a word of its own.
      $program --help && continue
      echo "check.sh: $program --help failed" >&2
      exit 1
    done
  ) || return 1
  for flag in $(grep -ohE -- '(^|[^-a-z])--[a-z][a-z_]+' README.md |
    grep -oE -- '--[a-z_]+' | sort -u); do
    case "$flag" in
      --config) continue ;; # Bazel's
      --logdir) continue ;; # TensorBoard's
    esac
    if ! grep -qE -- "$flag([^a-z_]|$)" <<<"$help"; then
      echo "check.sh: README.md names $flag, which no --help has"
      bad=1
    fi
  done
  return "$bad"
}

passed=0
failed=0
for check in "${checks[@]}"; do
  started=$SECONDS
  # `if` would switch `set -e` off inside the check; a subshell would not help.
  # The checks therefore return their own status.
  if "check_$check"; then
    outcome=passed
    passed=$((passed + 1))
  else
    outcome=FAILED
    failed=$((failed + 1))
  fi
  echo "check.sh: $check $outcome in $((SECONDS - started)) s"
done
line="$passed passed, $failed failed"
[ -z "$summary" ] || echo "$line" >"$summary"
echo "$line"
[ "$failed" = 0 ]
