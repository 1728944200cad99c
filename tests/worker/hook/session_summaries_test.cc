#include "worker/hook/session_summaries.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
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

  void End(bool completed, bool failed) {
    EndRecord end;
    end.global_step = 600;
    end.completed = completed;
    end.failed = failed;
    EXPECT_THAT(hook_.AtEnd(end), IsOk());
  }
  static HparamsSessionStart Hparams() {
    HparamsSessionStart start;
    (*start.mutable_hparams())["seed"].set_number_value(1);
    return start;
  }
  // What the newest point has for the HPARAMS page.
  HparamsPluginData Data(const std::string& tag) {
    HparamsPluginData data;
    EXPECT_TRUE(data.ParseFromString(written_.points.back().contents[tag]));
    return data;
  }

  WrittenSummaries written_;
  std::vector<int64_t> starts_;
  std::vector<int64_t> graphs_;
  SessionSummaries hook_{"seed: 1\n",
                         Hparams(),
                         [this](int64_t step) { starts_.push_back(step); },
                         written_.Writer(),
                         [this](int64_t step) { graphs_.push_back(step); },
                         [] { return absl::FromUnixSeconds(1234567890); }};
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

TEST_F(SessionSummariesTest, TheSettingsAreThereFromTheStart) {
  Enter(500, /*initialized=*/false);
  const HparamsSessionStart start =
      Data("_hparams_/session_start_info").session_start_info();
  EXPECT_EQ(start.hparams().at("seed").number_value(), 1);
  EXPECT_EQ(start.start_time_secs(), 1234567890);
}

TEST_F(SessionSummariesTest, AnEndThatWasReachedIsToldWithItsOutcome) {
  Enter(500, /*initialized=*/false);
  End(/*completed=*/false, /*failed=*/false);
  EXPECT_EQ(written_.points.size(), 1u);
  End(/*completed=*/true, /*failed=*/false);
  const std::string tag = "_hparams_/session_end_info";
  EXPECT_EQ(written_.points.back().step, 600);
  EXPECT_EQ(Data(tag).session_end_info().status(), HparamsSessionEnd::SUCCESS);
  End(/*completed=*/true, /*failed=*/true);
  EXPECT_EQ(Data(tag).session_end_info().status(), HparamsSessionEnd::FAILURE);
}

}  // namespace
}  // namespace muster
