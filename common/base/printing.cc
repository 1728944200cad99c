#include "common/base/printing.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "common/base/logging.h"

namespace muster {
namespace {

constexpr absl::string_view kEraseLine = "\r\x1b[2K";
constexpr absl::string_view kCyan = "\x1b[36m";
constexpr absl::string_view kPlain = "\x1b[0m";
constexpr int kUsualColumns = 80;

// Shells seldom export COLUMNS; who does means it.
int ColumnsOf(const PrintingOptions& options) {
  int columns = 0;
  if (absl::SimpleAtoi(options.columns, &columns) && columns > 0) {
    return columns;
  }
  winsize window = {};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &window) == 0 && window.ws_col > 0) {
    return window.ws_col;
  }
  return kUsualColumns;
}

// The terminal at stderr, with lines and, below them, the live line.
class Terminal {
 public:
  explicit Terminal(const PrintingOptions& options) : options_(options) {}

  void ShowLive(absl::string_view text) {
    const std::string line = text.empty() ? "" : LiveLine(text);
    absl::MutexLock lock(&mu_);
    Write(absl::StrCat(kEraseLine, line));
  }
  void Log(Reporter::Level level, absl::string_view line) {
    absl::MutexLock lock(&mu_);
    // The live line would stand before this one.
    Write(kEraseLine);
    LogLine(level, line);
  }

 private:
  std::string LiveLine(absl::string_view text) const {
    const std::string& label = options_.label;
    std::string line = absl::StrCat(label, label.empty() ? "" : " ", text);
    // One column stays free: a full line makes some terminals scroll.
    const size_t width = std::max(20, ColumnsOf(options_) - 1);
    if (line.size() > width) line.resize(width);
    if (!options_.no_color.empty() || label.empty()) return line;
    const size_t colored = std::min(label.size(), line.size());
    return absl::StrCat(kCyan, line.substr(0, colored), kPlain,
                        line.substr(colored));
  }
  static void Write(absl::string_view text) {
    std::fwrite(text.data(), 1, text.size(), stderr);
    std::fflush(stderr);
  }

  const PrintingOptions options_;
  // Held while a text is written, so that none comes between.
  absl::Mutex mu_;
};

}  // namespace

ProgressOutput MakePrinting(const PrintingOptions& options) {
  ProgressOutput output;
  if (isatty(STDERR_FILENO) != 1) {
    output.reporter = Reporter(&LogLine);
    return output;
  }
  // Shared by the two functions.
  const auto terminal = std::make_shared<Terminal>(options);
  output.show_live = [terminal](absl::string_view text) {
    terminal->ShowLive(text);
  };
  output.reporter =
      Reporter([terminal](Reporter::Level level, absl::string_view line) {
        terminal->Log(level, line);
      });
  return output;
}

}  // namespace muster
