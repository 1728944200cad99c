#include "worker/input/map_threads.h"

#include <algorithm>
#include <utility>

namespace muster {
namespace {

// Runs of rows for each thread: enough that one with slow rows delays nobody
// much, few enough that handing them out costs nothing.
constexpr int64_t kRunsPerThread = 4;

}  // namespace

absl::Status MapThreads::ForEachRow(
    int64_t rows, absl::FunctionRef<absl::Status(int64_t)> prepare) {
  first_bad_ = INT64_MAX;
  {
    const absl::MutexLock lock(&mu_);
    error_ = absl::OkStatus();
  }
  if (threads() == 1) {
    Prepare(0, rows, prepare);
  } else {
    const int64_t runs = std::min(rows, threads() * kRunsPerThread);
    team_.Run(static_cast<int>(runs), [&](int run) {
      Prepare(rows * run / runs, rows * (run + 1) / runs, prepare);
    });
  }
  const absl::MutexLock lock(&mu_);
  if (!error_.ok()) return error_;
  return stopped_ ? absl::CancelledError("preparing rows: stopped")
                  : absl::OkStatus();
}

void MapThreads::Prepare(int64_t begin, int64_t end,
                         absl::FunctionRef<absl::Status(int64_t)> prepare) {
  for (int64_t i = begin; i < end; ++i) {
    if (stopped_.load(std::memory_order_relaxed) ||
        i > first_bad_.load(std::memory_order_relaxed)) {
      return;
    }
    absl::Status status = prepare(i);
    if (!status.ok()) return Fail(i, std::move(status));
  }
}

void MapThreads::Fail(int64_t row, absl::Status error) {
  const absl::MutexLock lock(&mu_);
  if (row > first_bad_) return;
  first_bad_ = row;
  error_ = std::move(error);
}

}  // namespace muster
