#ifndef WORKER_TASK_PRINTING_H_
#define WORKER_TASK_PRINTING_H_

#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/base/reporter.h"
#include "worker/hook/progress.h"

namespace muster {

struct PrintingOptions {
  // The words before the progress, "worker 0".
  std::string label;
  // The time between two lines where there is no terminal.
  absl::Duration progress_every = absl::Seconds(10);
  // The environment's NO_COLOR and COLUMNS.
  std::string no_color;
  std::string columns;
};

// How a process prints: to the log, and on a terminal progress as one line that
// stays. The functions are thread-safe.
struct Printing {
  Progress::Options progress;
  Progress::Write write_progress;
  // A line for the operator.
  Reporter reporter;
};

// Looks at stderr.
Printing MakePrinting(const PrintingOptions& options);

}  // namespace muster

#endif  // WORKER_TASK_PRINTING_H_
