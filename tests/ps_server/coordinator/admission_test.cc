#include "ps_server/coordinator/admission.h"

#include <functional>
#include <string>
#include <utility>

#include "common/rpc/protocol.h"
#include "common/rpc/training_text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/ps_server/shard/shard_requests.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class AdmissionTest : public testing::Test {
 protected:
  static RegisterRequest MakeRequest(const Sender& sender,
                                     const std::string& training = "a") {
    RegisterRequest request;
    request.set_protocol_version(kProtocolVersion);
    *request.mutable_sender() = sender;
    request.set_chief(sender.task().index() == 0);
    request.set_training_fingerprint(std::hash<std::string>()(training));
    request.set_training_text(training);
    return request;
  }

  // Of a program, or of layers.
  static RegisterRequest MakeRequest(const Sender& sender,
                                     absl::string_view kind,
                                     const std::string& own,
                                     const std::string& shared) {
    return MakeRequest(sender,
                       JoinTrainingText({std::string(kind), own, shared}));
  }

  absl::Status Check(const RegisterRequest& request) {
    return admission_.Check(request, members_);
  }

  absl::Status CheckTraining(const RegisterRequest& request,
                             const std::string& end = "") {
    return admission_.CheckTraining(request, members_, end);
  }

  // Registers the request's sender.
  void Admit(const RegisterRequest& request) {
    members_.FindOrAdd(KeyOf(request.sender()))
        .Admit(request.sender(), /*has_finished=*/false);
    admission_.AdoptTraining(request);
  }

  Admission admission_{ClusterDef(), /*max_unlisted=*/2};
  Members members_;
  const Sender chief_ = MakeSender(0, 100);
  const Sender worker_ = MakeSender(1, 101);
};

TEST_F(AdmissionTest, TakesTasksThatTrainAndSpeakThisProtocol) {
  EXPECT_THAT(Check(MakeRequest(worker_)), IsOk());
  EXPECT_THAT(Check(MakeRequest(MakeSender(1, 101, "ps"))),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(Check(MakeRequest(MakeSender(1, 0))),
              StatusIs(absl::StatusCode::kInvalidArgument));
  RegisterRequest request = MakeRequest(worker_);
  request.set_protocol_version(kProtocolVersion + 1);
  EXPECT_THAT(Check(request),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("it goes on from its checkpoint")));
}

TEST_F(AdmissionTest, HasRoomForKnownTasksAndFewOthers) {
  for (const Sender& sender : {chief_, worker_}) Admit(MakeRequest(sender));
  EXPECT_THAT(Check(MakeRequest(MakeSender(2, 102))),
              StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_THAT(Check(MakeRequest(MakeSender(1, 555))), IsOk());
}

TEST_F(AdmissionTest, AnotherStartConfirmsThatItTakesOver) {
  RegisterRequest request = MakeRequest(MakeSender(1, 102));
  EXPECT_EQ(Admission::WantedTakeover(request, members_), 0u);
  Admit(MakeRequest(worker_));
  const uint64_t wanted = Admission::WantedTakeover(request, members_);
  EXPECT_NE(wanted, 0u);
  request.set_takeover(wanted);
  EXPECT_EQ(Admission::WantedTakeover(request, members_), 0u);
}

TEST_F(AdmissionTest, TheTrainingOfTheChiefReplacesThatOfAWorker) {
  Admit(MakeRequest(worker_));
  EXPECT_THAT(CheckTraining(MakeRequest(worker_)), IsOk());
  EXPECT_THAT(CheckTraining(MakeRequest(MakeSender(2, 102), "b")),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("differs from that of /job:worker/task:1")));
  const RegisterRequest chiefs = MakeRequest(chief_, "b");
  EXPECT_THAT(CheckTraining(chiefs), IsOk());
  EXPECT_TRUE(admission_.AdoptTraining(chiefs));
  EXPECT_FALSE(admission_.AdoptTraining(chiefs)) << "it is the same";
  EXPECT_THAT(CheckTraining(MakeRequest(worker_)),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST_F(AdmissionTest, OnlyAChiefThatIsAloneReplacesAChiefs) {
  Admit(MakeRequest(chief_));
  EXPECT_THAT(CheckTraining(MakeRequest(chief_, "b")), IsOk());
  EXPECT_THAT(CheckTraining(MakeRequest(worker_, "b")),
              StatusIs(absl::StatusCode::kInvalidArgument));
  Admit(MakeRequest(worker_));
  EXPECT_THAT(CheckTraining(MakeRequest(chief_, "b")),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

constexpr char kShared[] = "a: 1\ntensor: \"w\" [2]\n";
constexpr char kOther[] = "a: 1\ntensor: \"w\" [3]\n";

TEST_F(AdmissionTest, ProgramBesideLayers_HasTheSharedPartAlike) {
  Admit(MakeRequest(chief_, kLayersKind, "x", kShared));
  EXPECT_THAT(CheckTraining(MakeRequest(worker_, kProgramKind, "y", kOther)),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("register /job:worker/task:1: its "
                                       "training differs from that of"),
                             HasSubstr("/job:worker/task:0: line 2 is"),
                             HasSubstr("'tensor: \"w\" [3]', there it is "
                                       "'tensor: \"w\" [2]'"))));
  const RegisterRequest other =
      MakeRequest(worker_, kProgramKind, "y", kShared);
  EXPECT_THAT(CheckTraining(other), IsOk());
  EXPECT_FALSE(admission_.AdoptTraining(other)) << "nobody is to come again";
}

TEST_F(AdmissionTest,
       LayersBesideAProgramThatCameFirst_HaveTheSharedPartAlike) {
  Admit(MakeRequest(worker_, kProgramKind, "y", kShared));
  const RegisterRequest chiefs = MakeRequest(chief_, kLayersKind, "x", kShared);
  EXPECT_THAT(CheckTraining(chiefs), IsOk());
  EXPECT_FALSE(admission_.AdoptTraining(chiefs)) << "nobody is to come again";
  EXPECT_THAT(CheckTraining(MakeRequest(worker_, kProgramKind, "y", kShared)),
              IsOk());
}

TEST_F(AdmissionTest, WorkersOfOneKindBesideAnother_HaveTheirOwnPartAlike) {
  Admit(MakeRequest(chief_, kLayersKind, "x", kShared));
  Admit(MakeRequest(worker_, kProgramKind, "y", kShared));
  const Sender third = MakeSender(2, 102);
  EXPECT_THAT(CheckTraining(MakeRequest(third, kProgramKind, "y", kShared)),
              IsOk());
  EXPECT_THAT(CheckTraining(MakeRequest(third, kLayersKind, "x", kShared)),
              IsOk());
  EXPECT_THAT(CheckTraining(MakeRequest(third, kProgramKind, "z", kShared)),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("differs from that of /job:worker/task:1")));
}

TEST_F(AdmissionTest, ChiefOfAnotherKind_ReplacesASharedPartThatDiffers) {
  Admit(MakeRequest(worker_, kProgramKind, "y", kOther));
  const RegisterRequest chiefs = MakeRequest(chief_, kLayersKind, "x", kShared);
  EXPECT_THAT(CheckTraining(chiefs), IsOk());
  EXPECT_TRUE(admission_.AdoptTraining(chiefs));
  EXPECT_THAT(CheckTraining(MakeRequest(worker_, kProgramKind, "y", kOther)),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("tensors, rule, replication, placement")));
}

TEST_F(AdmissionTest, NothingReplacesTheTrainingOfAJobThatIsDone) {
  Admit(MakeRequest(chief_));
  EXPECT_THAT(CheckTraining(MakeRequest(chief_), "steps, at step 9"), IsOk());
  EXPECT_THAT(CheckTraining(MakeRequest(chief_, "b"), "steps, at step 9"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("is done (steps, at step 9)")));
}

}  // namespace
}  // namespace muster
