#include "common/base/wait_reporter.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

class WaitReporterTest : public ::testing::Test {
 protected:
  std::string At(absl::Duration since_start) {
    return line_.WaitFor("/job:ps/task:0", absl::UnixEpoch() + since_start);
  }
  WaitReporter line_;
};

TEST_F(WaitReporterTest, SaysAfterASecondAndThenEveryTen) {
  EXPECT_EQ(At(absl::ZeroDuration()), "");
  EXPECT_EQ(line_.next_due(), absl::UnixEpoch() + absl::Seconds(1));
  EXPECT_EQ(At(absl::Seconds(1)), "waiting for /job:ps/task:0; 1 s so far");
  EXPECT_EQ(At(absl::Seconds(2)), "");
  EXPECT_EQ(line_.next_due(), absl::UnixEpoch() + absl::Seconds(11));
  EXPECT_EQ(At(absl::Seconds(11)), "waiting for /job:ps/task:0; 11 s so far");
}

TEST_F(WaitReporterTest, ShortWaitEndsInSilence) {
  EXPECT_EQ(At(absl::ZeroDuration()), "");
  EXPECT_FALSE(line_.Stop());
  EXPECT_EQ(line_.since(), absl::InfiniteFuture());
  EXPECT_EQ(line_.next_due(), absl::InfiniteFuture());
}

TEST_F(WaitReporterTest, EndOfALongWaitIsSaidOnce) {
  EXPECT_EQ(At(absl::ZeroDuration()), "");
  EXPECT_NE(At(absl::Seconds(5)), "");
  EXPECT_TRUE(line_.Stop());
  EXPECT_FALSE(line_.Stop());
}

TEST_F(WaitReporterTest, EachWaitCountsFromItsOwnStart) {
  EXPECT_EQ(At(absl::ZeroDuration()), "");
  line_.Stop();
  EXPECT_EQ(At(absl::Seconds(100)), "");
  EXPECT_EQ(At(absl::Seconds(102)), "waiting for /job:ps/task:0; 2 s so far");
}

TEST_F(WaitReporterTest, TakesAWaitOverWithItsStartAndWhatWasSaid) {
  line_.TakeOver(absl::UnixEpoch(), absl::UnixEpoch() + absl::Seconds(5));
  EXPECT_EQ(At(absl::Seconds(5)), "");
  EXPECT_EQ(At(absl::Seconds(11)), "waiting for /job:ps/task:0; 11 s so far");
  EXPECT_TRUE(line_.Stop());
  // It has noticed later.
  At(absl::Seconds(5));
  line_.TakeOver(absl::UnixEpoch(), absl::UnixEpoch() + absl::Seconds(6));
  EXPECT_EQ(line_.since(), absl::UnixEpoch());
  EXPECT_TRUE(line_.Stop());
  line_.TakeOver(absl::UnixEpoch(), absl::UnixEpoch() + absl::Milliseconds(5));
  EXPECT_FALSE(line_.Stop()) << "nothing was said";
}

}  // namespace
}  // namespace muster
