#ifndef WORKER_TASK_REPORT_LINES_H_
#define WORKER_TASK_REPORT_LINES_H_

#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "common/base/reporter.h"

namespace muster {

// Reports a table's lines, each by itself, without those that are empty.
inline void ReportLines(absl::string_view table, const Reporter& reporter) {
  for (const absl::string_view line :
       absl::StrSplit(table, '\n', absl::SkipEmpty())) {
    reporter.Info(line);
  }
}

}  // namespace muster

#endif  // WORKER_TASK_REPORT_LINES_H_
