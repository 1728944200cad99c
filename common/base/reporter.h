#ifndef COMMON_BASE_REPORTER_H_
#define COMMON_BASE_REPORTER_H_

#include <functional>
#include <utility>

#include "absl/strings/string_view.h"

namespace muster {

// Where lines for the operator go. A process gives LogLine
// (common/base/logging.h), a test a ReportedLines
// (tests/testing/reported_lines.h). Cheap to copy; thread-safe if its function
// is.
//
//   options.reporter = Reporter(&LogLine);
//   options.reporter.Info(absl::StrCat("restored ", path));
class Reporter {
 public:
  enum Level { kInfo, kWarning, kError };
  // One line, without its end.
  using Write = std::function<void(Level level, absl::string_view line)>;

  // Nobody hears.
  Reporter() = default;
  explicit Reporter(Write write) : write_(std::move(write)) {}

  void Info(absl::string_view line) const { Report(kInfo, line); }
  void Warning(absl::string_view line) const { Report(kWarning, line); }
  void Error(absl::string_view line) const { Report(kError, line); }
  void Report(Level level, absl::string_view line) const {
    if (write_) write_(level, line);
  }

 private:
  Write write_;
};

}  // namespace muster

#endif  // COMMON_BASE_REPORTER_H_
