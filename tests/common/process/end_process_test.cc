#include "common/process/end_process.h"

#include <cstdio>
#include <cstdlib>

#include "gtest/gtest.h"

namespace muster {
namespace {

// Ends the process in another way if it is ever destroyed.
struct AbortsAtExit {
  ~AbortsAtExit() { std::abort(); }
};

TEST(EndProcessTest, EndsWithTheCodeAndDestroysNothing) {
  EXPECT_EXIT(
      {
        static AbortsAtExit aborts;
        EndProcess(7);
      },
      testing::ExitedWithCode(7), "");
}

TEST(EndProcessTest, FlushesWhatWasPrinted) {
  EXPECT_EXIT(
      {
        // Buffered, unlike stderr by default.
        std::setvbuf(stderr, nullptr, _IOFBF, BUFSIZ);
        std::fputs("last words", stderr);
        EndProcess(0);
      },
      testing::ExitedWithCode(0), "last words");
}

}  // namespace
}  // namespace muster
