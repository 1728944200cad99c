#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/worker/ctl/running_job.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

class SaveTest : public RunningJob {
 protected:
  void AnswerWith(const std::string& error) {
    Play([](const JobState& state) { return state.save_requests() > 0; },
         [this, error](const JobState& state) {
           ReportSaveRequest report;
           *report.mutable_sender() = chief_;
           report.set_save_request(state.save_requests());
           report.set_error(error);
           report.set_model_epoch(state.model_epoch());
           Call(&CoordinationService::Stub::ReportSave, report,
                ReportSaveReply());
         });
  }
};

TEST_F(SaveTest, ReturnsWhenTheChiefHasSaved) {
  Commit();
  AnswerWith("");
  const VerbResult result = Run({"save"});
  EXPECT_EQ(result.exit_code, kExitDone) << result.error;
  EXPECT_EQ(result.out, "saved: step 0\n");
}

TEST_F(SaveTest, SaveThatFails_SaysWhy) {
  Commit();
  AnswerWith("no space left on device");
  const VerbResult result = Run({"save"});
  EXPECT_NE(result.exit_code, kExitDone);
  EXPECT_THAT(result.error,
              HasSubstr("the save failed: no space left on device"));
}

TEST_F(SaveTest, NobodyThatSavesInTime_IsWorthAnotherTry) {
  Commit();
  const VerbResult result = Run({"save", "--max_wait=0"});
  EXPECT_EQ(result.exit_code, kExitRetryable);
  EXPECT_THAT(result.error, HasSubstr("for the chief to save"));
}

TEST_F(SaveTest, BeforeThereIsAModel_IsRefused) {
  const VerbResult result = Run({"save"});
  EXPECT_EQ(result.exit_code, kExitBadConfig);
  EXPECT_THAT(result.error, HasSubstr("the job is INITIAL"));
}

TEST_F(SaveTest, MistakesInFlags_AreNamed) {
  EXPECT_THAT(Run({"save", "--max_wait=soon"}).error,
              HasSubstr("--max_wait=soon: wanted seconds"));
  EXPECT_THAT(Run({"save", "--namespace=no such"}).error,
              HasSubstr("--namespace"));
}

}  // namespace
}  // namespace muster
