#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/worker/ctl/running_job.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

class StopTest : public RunningJob {
 protected:
  // The chief hears of the wish, ends the job, and all leave.
  void EndWhenAsked(const std::string& reason = "operator") {
    Play([](const JobState& state) { return state.is_stopped(); },
         [this, reason](const JobState& state) {
           StepRequest step;
           *step.mutable_sender() = chief_;
           step.set_model_epoch(state.model_epoch());
           step.set_ps_incarnation(kPsIncarnation);
           step.set_stop_reason(reason);
           Call(&CoordinationService::Stub::Step, step, StepReply());
           Finish(worker_);
           Finish(chief_);
         });
  }
};

TEST_F(StopTest, ReturnsWhenTheJobIsDone) {
  Commit();
  EndWhenAsked();
  const VerbResult result = Run({"stop"});
  EXPECT_EQ(result.exit_code, kExitDone) << result.error;
  EXPECT_EQ(result.out, "the job is DONE at step 0: operator\n");
  // Once more: nothing is left to do.
  EXPECT_EQ(Run({"stop"}).out, result.out);
}

TEST_F(StopTest, WithoutASave_NamesTheNewestCheckpointAndIsNotTakenBack) {
  Commit();
  EndWhenAsked("operator, without a save");
  const VerbResult result = Run({"stop", "--no_save"});
  EXPECT_EQ(result.exit_code, kExitDone) << result.error;
  EXPECT_EQ(result.out,
            "the job is DONE at step 0: operator, without a save; no "
            "checkpoint of it is known\n");
  EXPECT_EQ(Run({"stop", "--no_save"}).out, result.out);
  EXPECT_THAT(Run({"stop"}).error, HasSubstr("without its last save"));
}

TEST_F(StopTest, BeforeThereIsAModel_IsRefused) {
  const VerbResult result = Run({"stop"});
  EXPECT_EQ(result.exit_code, kExitBadConfig);
  EXPECT_THAT(result.error, HasSubstr("no model is committed"));
}

}  // namespace
}  // namespace muster
