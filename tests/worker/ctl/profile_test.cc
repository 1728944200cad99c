#include <string>
#include <vector>

#include "common/config/json.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/fake_file_system.h"
#include "tests/worker/ctl/running_job.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class ProfileTest : public RunningJob {
 protected:
  ProfileTest() { EXPECT_THAT(fs_.CreateFolder("disk/out"), IsOk()); }

  // Both workers have sent their part when the chief hears of a profile, or
  // those that are named.
  void AnswerOf(const std::vector<Sender>& senders) {
    Play([](const JobState& state) { return state.profile_number() > 0; },
         [this, senders](const JobState& state) {
           for (const Sender& sender : senders) Send(sender, state);
         });
  }

  void Send(const Sender& sender, const JobState& state) {
    AddProfileRequest request;
    *request.mutable_sender() = sender;
    request.set_number(state.profile_number());
    ProfilePart& part = *request.mutable_part();
    part.set_task("/job:worker/task:" + std::to_string(sender.task().index()));
    part.set_to_first_ps_us(500);
    part.set_error_us(7);
    part.add_lanes("step");
    part.add_names("step");
    for (int i = 1; i <= state.profile_steps(); ++i) {
      ProfileEvent& event = *part.add_events();
      event.set_begin_us(1000 * i);
      event.set_duration_us(900);
      event.set_step(i);
    }
    Call(&CoordinationService::Stub::AddProfile, request, AddProfileReply());
  }

  VerbResult Profile(std::vector<std::string> flags = {}) {
    std::vector<std::string> args = {"profile", "-o", kPath};
    args.insert(args.end(), flags.begin(), flags.end());
    args.push_back("--ps_hosts=" + address_);
    return RunVerb(args, &fs_);
  }

  // The names of processes in the file.
  std::vector<std::string> Processes() {
    const auto document = ParseJson(fs_.Contents(kPath));
    EXPECT_THAT(document, IsOk());
    std::vector<std::string> names;
    for (const JsonValue& event : document->Find("traceEvents")->items) {
      if (event.Find("name")->text == "process_name") {
        names.push_back(event.Find("args")->Find("name")->text);
      }
    }
    return names;
  }
  bool IsThere(const std::string& path) { return fs_.OpenFile(path).ok(); }

  static constexpr char kPath[] = "disk/out/trace.json";
  FakeFileSystem fs_{"disk"};
};

TEST_F(ProfileTest, HasTheStepsOfEachTask) {
  Commit();
  AnswerOf({chief_, worker_});
  const VerbResult result = Profile({"--steps=3"});
  EXPECT_EQ(result.exit_code, kExitDone) << result.error;
  EXPECT_THAT(result.out,
              AllOf(StartsWith("wrote disk/out/trace.json, "),
                    HasSubstr("3 steps of 2 workers and 1 ps tasks")));
  EXPECT_EQ(result.error, "");
  EXPECT_THAT(Processes(), ElementsAre("/job:ps/task:0", "/job:worker/task:0",
                                       "/job:worker/task:1"));
  EXPECT_THAT(fs_.Contents(kPath),
              AllOf(HasSubstr("\"ts\":3500.000"), HasSubstr("within 7 us")));
  EXPECT_FALSE(IsThere("disk/out/trace.json.partial"));
}

TEST_F(ProfileTest, AFormerFile_IsReplacedOnlyByAWholeOne) {
  Commit();
  fs_.CreateFile(kPath).value()->Append("former").IgnoreError();
  EXPECT_EQ(Profile({"--steps=0"}).exit_code, kExitBadConfig);
  EXPECT_EQ(fs_.Contents(kPath), "former");
  AnswerOf({chief_, worker_});
  EXPECT_EQ(Profile().exit_code, kExitDone);
  EXPECT_THAT(Processes(), Contains("/job:worker/task:1"));
}

TEST_F(ProfileTest, AWorkerThatSendsNothingInTime_IsNamed) {
  Commit();
  AnswerOf({chief_});
  const VerbResult result = Profile({"--max_wait=1"});
  EXPECT_EQ(result.exit_code, kExitRetryable);
  EXPECT_THAT(result.error,
              HasSubstr("not in it: /job:worker/task:1: it has not sent"));
  EXPECT_THAT(Processes(),
              ElementsAre("/job:ps/task:0", "/job:worker/task:0",
                          StartsWith("/job:worker/task:1: it has not sent")));
}

TEST_F(ProfileTest, AWorkerThatLeavesMeanwhile_IsNamed) {
  Commit();
  Play([](const JobState& state) { return state.profile_number() > 0; },
       [this](const JobState& state) {
         Finish(worker_);
         Send(chief_, state);
       });
  const VerbResult result = Profile();
  EXPECT_EQ(result.exit_code, kExitRetryable);
  EXPECT_THAT(result.error,
              HasSubstr("not in it: /job:worker/task:1: has finished"));
}

TEST_F(ProfileTest, ANewerProfile_EndsThisOneWithoutAFile) {
  Commit();
  Play([](const JobState& state) { return state.profile_number() > 0; },
       [this](const JobState&) {
         BeginProfileRequest request;
         request.set_steps(5);
         Call(&CoordinationService::Stub::BeginProfile, request,
              BeginProfileReply());
       });
  const VerbResult result = Profile();
  EXPECT_EQ(result.exit_code, kExitBadConfig);
  EXPECT_THAT(result.error, HasSubstr("somebody has begun another one, 2"));
  EXPECT_FALSE(IsThere(kPath));
  EXPECT_FALSE(IsThere("disk/out/trace.json.partial"));
}

TEST_F(ProfileTest, AJobThatDoesNotRun_IsRefusedByItsPhase) {
  const VerbResult result = Profile();
  EXPECT_EQ(result.exit_code, kExitBadConfig);
  EXPECT_THAT(result.error, HasSubstr("the job is INITIAL"));
  EXPECT_FALSE(IsThere(kPath));
}

TEST_F(ProfileTest, AFileThatCannotBeWritten_IsSaidBeforeTheProfile) {
  Commit();
  const VerbResult result = Profile({"-o=nowhere/trace.json"});
  EXPECT_EQ(result.exit_code, kExitBadConfig);
  EXPECT_THAT(result.error, HasSubstr("nowhere/trace.json"));
  GetProfileRequest request;
  request.set_number(1);
  grpc::ClientContext context;
  GetProfileReply reply;
  EXPECT_FALSE(
      CoordinationService::NewStub(
          grpc::CreateChannel(address_, grpc::InsecureChannelCredentials()))
          ->GetProfile(&context, request, &reply)
          .ok())
      << "none has begun";
}

TEST_F(ProfileTest, ADiskThatFails_LeavesTheFormerFile) {
  Commit();
  fs_.CreateFile(kPath).value()->Append("former").IgnoreError();
  AnswerOf({chief_, worker_});
  fs_.FailAt(2, absl::ResourceExhaustedError("no space left on device"));
  const VerbResult result = Profile();
  EXPECT_NE(result.exit_code, kExitDone);
  EXPECT_THAT(result.error, HasSubstr("no space left on device"));
  EXPECT_EQ(fs_.Contents(kPath), "former");
  EXPECT_FALSE(IsThere("disk/out/trace.json.partial"));
}

TEST_F(ProfileTest, MistakesInFlags_AreNamed) {
  for (const char* steps : {"0", "1001", "many", "-3", "2.5"}) {
    const VerbResult result = Profile({std::string("--steps=") + steps});
    EXPECT_EQ(result.exit_code, kExitBadConfig);
    EXPECT_THAT(result.error, HasSubstr("wanted 1 to 1000"));
  }
  EXPECT_THAT(Profile({"--max_wait=soon"}).error,
              HasSubstr("--max_wait=soon: wanted seconds"));
  EXPECT_THAT(Profile({"--namespace=no such"}).error, HasSubstr("--namespace"));
  EXPECT_THAT(Profile({"-o=s3://bucket/trace.json"}).error,
              HasSubstr("s3://bucket/trace.json"));
}

TEST_F(ProfileTest, AnotherNamespaceThanThereIs_IsSaid) {
  Commit();
  const VerbResult result = Profile({"--namespace=other"});
  EXPECT_EQ(result.exit_code, kExitBadConfig);
  EXPECT_THAT(result.error, HasSubstr("other"));
}

TEST_F(ProfileTest, NoPsThatAnswers_IsWorthAnotherTry) {
  const VerbResult result =
      RunVerb({"profile", "-o", kPath, "--ps_hosts=127.0.0.1:1"}, &fs_);
  EXPECT_EQ(result.exit_code, kExitRetryable);
  EXPECT_THAT(result.error, HasSubstr("does not answer"));
}

TEST_F(ProfileTest, Help_SaysWhatTheFileHas) {
  EXPECT_THAT(Run({"profile", "--help"}).out,
              AllOf(HasSubstr("  -o=VALUE"), HasSubstr("ui.perfetto.dev"),
                    Not(HasSubstr("--o="))));
}

}  // namespace
}  // namespace muster
