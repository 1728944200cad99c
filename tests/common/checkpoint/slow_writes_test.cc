#include "common/checkpoint/slow_writes.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const absl::Time kStart = absl::UnixEpoch() + absl::Seconds(1000);

class SlowWritesTest : public ::testing::Test {
 protected:
  // Lets time pass, and calls as a thread does that wakes when it is due.
  void RunUntil(absl::Duration end) {
    while (writes_.next_due() <= kStart + end) HandleAt(writes_.next_due());
  }
  void HandleAt(absl::Time now) {
    const SlowWrites::Due due = writes_.Handle(now);
    for (const std::string& line : due.lines) said_.push_back(line);
    if (due.overdue.has_value()) reported_.push_back(*due.overdue);
  }

  SlowWrites writes_{absl::Seconds(50)};
  std::vector<std::string> said_;
  std::vector<std::string> reported_;
};

TEST_F(SlowWritesTest, AWriteThatHangs_IsSaidAfterTenSecondsAndEachThirty) {
  writes_.Begin("save of step 400", kStart);
  RunUntil(absl::Seconds(70));
  EXPECT_THAT(said_,
              ElementsAre("The save of step 400 has taken 10 s so far",
                          "The save of step 400 has taken 40 s so far",
                          "The save of step 400 has taken 70 s so far: ps task "
                          "0 grants no step until it is over"));
}

TEST_F(SlowWritesTest, AWriteOverTheLimit_IsReportedUntilItEnds) {
  const int64_t write = writes_.Begin("save of step 400", kStart);
  RunUntil(absl::Seconds(49));
  EXPECT_THAT(reported_, IsEmpty());
  RunUntil(absl::Seconds(70));
  EXPECT_THAT(reported_,
              ElementsAre("the save of step 400, which has taken 50 s "
                          "(checkpoint.max_save_seconds: 50)",
                          "the save of step 400, which has taken 70 s "
                          "(checkpoint.max_save_seconds: 50)"));
  reported_.clear();
  writes_.End(write);
  HandleAt(kStart + absl::Seconds(71));
  HandleAt(kStart + absl::Seconds(72));
  EXPECT_THAT(reported_, ElementsAre("")) << "once";
}

TEST_F(SlowWritesTest, AReadThatHangs_IsSaidAndHasNoLimit) {
  writes_.Begin("read of ckpt-400", kStart, SlowWrites::Kind::kRead);
  RunUntil(absl::Seconds(70));
  EXPECT_THAT(said_, ElementsAre("The read of ckpt-400 has taken 10 s so far",
                                 "The read of ckpt-400 has taken 40 s so far",
                                 "The read of ckpt-400 has taken 70 s so far"));
  EXPECT_THAT(reported_, IsEmpty());
}

TEST_F(SlowWritesTest, ManyWritesWithinTheLimit_AreNotReported) {
  absl::Duration passed = absl::ZeroDuration();
  for (int save = 0; save < 5; ++save) {
    const int64_t write = writes_.Begin("save", kStart + passed);
    passed += absl::Seconds(49);
    RunUntil(passed);
    writes_.End(write);
    HandleAt(kStart + passed);
  }
  EXPECT_EQ(said_.size(), 5 * 2);
  EXPECT_THAT(reported_, IsEmpty());
}

TEST_F(SlowWritesTest, OneOfTwoWritesEnds_TheOtherStaysReported) {
  const int64_t one = writes_.Begin("write of result.json", kStart);
  writes_.Begin("save of step 400", kStart);
  RunUntil(absl::Seconds(50));
  reported_.clear();
  writes_.End(one);
  HandleAt(kStart + absl::Seconds(51));
  EXPECT_THAT(reported_, IsEmpty());
}

TEST_F(SlowWritesTest, AProcessThatStoodStill_SaysOneLine) {
  writes_.Begin("save of step 400", kStart);
  HandleAt(kStart + absl::Seconds(45));
  EXPECT_THAT(said_, ElementsAre("The save of step 400 has taken 45 s so far"));
}

}  // namespace
}  // namespace muster
