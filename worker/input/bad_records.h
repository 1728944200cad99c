#ifndef WORKER_INPUT_BAD_RECORDS_H_
#define WORKER_INPUT_BAD_RECORDS_H_

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "common/base/reporter.h"

namespace muster {

// Counts the records that input.on_bad_record: SKIP passes over, and tells the
// first ones, each once. Thread-safe.
class BadRecords {
 public:
  explicit BadRecords(Reporter reporter) : reporter_(std::move(reporter)) {}

  // `error` names the file and the row.
  void Add(const absl::Status& error);

  int64_t count() const {
    const absl::MutexLock lock(&mu_);
    return count_;
  }

  // Tells how many of an evaluation's rows were bad, if some were: those since
  // count() was `count_before`.
  void SayLeftOut(int64_t count_before, int64_t good_rows) const;

 private:
  static constexpr size_t kMostLines = 5;

  // Constant after construction.
  const Reporter reporter_;

  mutable absl::Mutex mu_;
  int64_t count_ ABSL_GUARDED_BY(mu_) = 0;
  std::set<std::string> told_ ABSL_GUARDED_BY(mu_);
};

}  // namespace muster

#endif  // WORKER_INPUT_BAD_RECORDS_H_
