#ifndef TESTS_TESTING_REPORTED_LINES_H_
#define TESTS_TESTING_REPORTED_LINES_H_

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "common/base/reporter.h"

namespace muster {

// The lines for the operator, kept for a test. Thread-safe.
class ReportedLines {
 public:
  // Refers to this.
  Reporter reporter() {
    return Reporter([this](Reporter::Level level, absl::string_view line) {
      absl::MutexLock lock(&mu_);
      lines_.push_back(absl::StrCat(Letter(level), line));
    });
  }

  // All of them, each after its level as the log prints it: "I restored a/b".
  std::vector<std::string> lines() const {
    absl::MutexLock lock(&mu_);
    return lines_;
  }

  std::vector<std::string> errors() const {
    std::vector<std::string> errors = lines();
    errors.erase(std::remove_if(errors.begin(), errors.end(),
                                [](const std::string& line) {
                                  return !absl::StartsWith(line, "E ");
                                }),
                 errors.end());
    return errors;
  }

  // Returns when there are `count` or more.
  void Await(size_t count) const {
    const auto are_there = [this, count]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
      return lines_.size() >= count;
    };
    absl::MutexLock lock(&mu_);
    mu_.Await(absl::Condition(&are_there));
  }

  void Clear() {
    absl::MutexLock lock(&mu_);
    lines_.clear();
  }

 private:
  static absl::string_view Letter(Reporter::Level level) {
    if (level == Reporter::kInfo) return "I ";
    return level == Reporter::kWarning ? "W " : "E ";
  }

  mutable absl::Mutex mu_;
  std::vector<std::string> lines_ ABSL_GUARDED_BY(mu_);
};

}  // namespace muster

#endif  // TESTS_TESTING_REPORTED_LINES_H_
