#include "common/base/printing.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/logging.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr char kErase[] = "\r\x1b[2K";

// While it lives, stderr is a terminal or a pipe whose text the test reads.
class CapturedStderr {
 public:
  static CapturedStderr OfTerminal(int columns) {
    const int own = posix_openpt(O_RDWR | O_NOCTTY);
    grantpt(own);
    unlockpt(own);
    const int their = open(ptsname(own), O_RDWR | O_NOCTTY);
    termios settings = {};
    tcgetattr(their, &settings);
    cfmakeraw(&settings);
    tcsetattr(their, TCSANOW, &settings);
    winsize window = {};
    window.ws_col = static_cast<unsigned short>(columns);
    ioctl(their, TIOCSWINSZ, &window);
    return CapturedStderr(own, their);
  }
  static CapturedStderr OfPipe() {
    int ends[2] = {-1, -1};
    EXPECT_EQ(pipe(ends), 0);
    return CapturedStderr(ends[0], ends[1]);
  }
  ~CapturedStderr() {
    dup2(saved_, STDERR_FILENO);
    close(saved_);
    close(own_);
  }

  // What was written since the last time, as soon as it has `length` bytes.
  std::string Read(size_t length) const {
    std::string text;
    while (text.size() < length) {
      char more[4096];
      const ssize_t size = read(own_, more, sizeof(more));
      if (size <= 0) break;
      text.append(more, static_cast<size_t>(size));
    }
    return text;
  }

 private:
  CapturedStderr(int own, int their) : own_(own), saved_(dup(STDERR_FILENO)) {
    dup2(their, STDERR_FILENO);
    close(their);
    // The sink looks at stderr when it is made.
    LogOptions log;
    log.no_color = true;
    static_cast<void>(SetUpLogging(log).ok());
  }

  const int own_;
  const int saved_;
};

PrintingOptions Labelled() {
  PrintingOptions options;
  options.label = "worker 0";
  options.no_color = "1";
  return options;
}

TEST(PrintingTest, LiveLineIsWrittenOverAndCut) {
  const CapturedStderr captured = CapturedStderr::OfTerminal(/*columns=*/30);
  const ProgressOutput output = MakePrinting(Labelled());
  output.show_live("step=1 loss=0.213 steps_per_s=7");
  const std::string cut = absl::StrCat(kErase, "worker 0 step=1 loss=0.213 st");
  EXPECT_EQ(captured.Read(cut.size()), cut);
  output.show_live("");
  EXPECT_EQ(captured.Read(1), kErase);
}

TEST(PrintingTest, LabelIsColoredUnlessForbidden) {
  const CapturedStderr captured = CapturedStderr::OfTerminal(/*columns=*/80);
  PrintingOptions options = Labelled();
  options.no_color = "";
  MakePrinting(options).show_live("step=1");
  const std::string line =
      absl::StrCat(kErase, "\x1b[36mworker 0\x1b[0m step=1");
  EXPECT_EQ(captured.Read(line.size()), line);
}

TEST(PrintingTest, LogLineTakesThePlaceOfTheLiveLine) {
  const CapturedStderr captured = CapturedStderr::OfTerminal(/*columns=*/80);
  const ProgressOutput output = MakePrinting(Labelled());
  output.reporter.Info("saved");
  EXPECT_THAT(captured.Read(/*length=*/30),
              AllOf(StartsWith(kErase), EndsWith(" I saved\n")));
}

TEST(PrintingTest, PipeGetsPlainLinesAlone) {
  const CapturedStderr captured = CapturedStderr::OfPipe();
  const ProgressOutput output = MakePrinting(Labelled());
  EXPECT_EQ(output.show_live, nullptr);
  output.reporter.Info("saved");
  EXPECT_THAT(captured.Read(/*length=*/30),
              AllOf(EndsWith(" I saved\n"), Not(HasSubstr("\x1b"))));
}

}  // namespace
}  // namespace muster
