#include "worker/hook/session_summaries.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "tests/testing/status_matchers.h"
#include "tests/worker/hook/written_summaries.h"

namespace muster {
namespace {

using ::testing::ElementsAre;

class SessionSummariesTest : public ::testing::Test {
 protected:
  void Enter(int64_t global_step, bool initialized) {
    EpochRecord epoch;
    epoch.global_step = global_step;
    epoch.initialized = initialized;
    EXPECT_THAT(hook_.AfterEnter(epoch), IsOk());
  }

  WrittenSummaries written_;
  std::vector<int64_t> starts_;
  std::vector<int64_t> graphs_;
  SessionSummaries hook_{
      "seed: 1\n", [this](int64_t step) { starts_.push_back(step); },
      written_.Writer(), [this](int64_t step) { graphs_.push_back(step); }};
};

TEST_F(SessionSummariesTest, ForgetsEverythingAtAnInitialization) {
  Enter(0, /*initialized=*/true);
  EXPECT_THAT(starts_, ElementsAre(0));
}

TEST_F(SessionSummariesTest, KeepsThePointsOfTheRestoredStep) {
  Enter(500, /*initialized=*/false);
  Enter(400, /*initialized=*/false);
  EXPECT_THAT(starts_, ElementsAre(501, 401));
}

TEST_F(SessionSummariesTest, WritesTheTextAndTheGraphOnce) {
  Enter(500, /*initialized=*/false);
  Enter(400, /*initialized=*/false);
  ASSERT_EQ(written_.points.size(), 1u);
  EXPECT_EQ(written_.points[0].step, 500);
  EXPECT_THAT(graphs_, ElementsAre(500));
  EXPECT_THAT(written_.points[0].tensors["training_spec"].string_val(0),
              ::testing::StartsWith("    seed: 1\n"));
}

}  // namespace
}  // namespace muster
