#include "worker/task/printing.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>

#include "absl/strings/numbers.h"
#include "common/base/logging.h"

namespace muster {
namespace {

constexpr absl::string_view kEraseLine = "\r\x1b[2K";

}  // namespace

Printing MakePrinting(const PrintingOptions& options) {
  const bool terminal = isatty(STDERR_FILENO) != 0;
  Printing printing;
  printing.progress.terminal = terminal;
  printing.progress.color = terminal && options.no_color.empty();
  // Shells seldom export COLUMNS; who does means it.
  int columns = 0;
  winsize window = {};
  if (absl::SimpleAtoi(options.columns, &columns) && columns > 0) {
    printing.progress.columns = columns;
  } else if (ioctl(STDERR_FILENO, TIOCGWINSZ, &window) == 0 &&
             window.ws_col > 0) {
    printing.progress.columns = window.ws_col;
  }
  printing.progress.every = options.progress_every;
  printing.progress.label = options.label;
  printing.write_progress = [terminal](absl::string_view text) {
    if (!terminal) return LogLine(Reporter::kInfo, text);
    std::fwrite(text.data(), 1, text.size(), stderr);
    std::fflush(stderr);
  };
  printing.reporter =
      Reporter([terminal](Reporter::Level level, absl::string_view line) {
        // The live line would stand before this one.
        if (terminal) {
          std::fwrite(kEraseLine.data(), 1, kEraseLine.size(), stderr);
        }
        LogLine(level, line);
      });
  return printing;
}

}  // namespace muster
