#ifndef COMMON_BASE_PRINTING_H_
#define COMMON_BASE_PRINTING_H_

#include <string>

#include "common/base/work_progress.h"

namespace muster {

struct PrintingOptions {
  // The words before a live line, "worker 0"; "": none.
  std::string label;
  // The environment's NO_COLOR and COLUMNS.
  std::string no_color;
  std::string columns;
};

// How a process prints: lines to the log and, if stderr is a terminal, one live
// line below them, cut to its width. The functions are thread-safe.
ProgressOutput MakePrinting(const PrintingOptions& options);

}  // namespace muster

#endif  // COMMON_BASE_PRINTING_H_
