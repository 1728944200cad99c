// Workers that come and go: what the others are told, and what that costs.
#include <map>

#include "common/rpc/error_reason.h"
#include "gmock/gmock.h"
#include "ps_server/coordinator/state_versions.h"
#include "tests/ps_server/coordinator/coordinator_fixture.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr absl::Duration kLong = absl::Seconds(5);

class CoordinatorMembersTest : public CoordinatorTest {
 protected:
  static std::vector<int> IndicesIn(const JobState& state) {
    std::vector<int> indices;
    for (const WorkerState& worker : state.workers()) {
      indices.push_back(worker.sender().task().index());
    }
    return indices;
  }
  // The only Watch that is answered now.
  JobState Answer() {
    const std::vector<WatchAnswer> answers = coordinator_.TakeAnswers(now_);
    EXPECT_EQ(answers.size(), 1);
    return answers.empty() ? JobState() : answers[0].state;
  }
  bool IsAnyAnswered() { return !coordinator_.TakeAnswers(now_).empty(); }
  void WatchFromNow(const Sender& sender) {
    ASSERT_THAT(Watch(sender, coordinator_.state_version(), kLong), IsOk());
  }
  // No membership was told for a while.
  void Rest() { Pass(StateVersions::kPause); }
};

TEST_F(CoordinatorMembersTest, AWorkersState_HasItselfAndTheChief) {
  StartRun(5, 100);
  EXPECT_THAT(IndicesIn(Register(MakeSender(5, 105))->state()),
              ElementsAre(0, 5));
  ASSERT_THAT(Watch(MakeSender(3, 103), 0), IsOk());
  EXPECT_THAT(IndicesIn(Answer()), ElementsAre(0, 3));
  EXPECT_THAT(IndicesIn(Finish(MakeSender(4, 104))), ElementsAre(0, 4));
}

TEST_F(CoordinatorMembersTest, TheStateOfTheChiefAndOfAPs_HasAll) {
  StartRun(3, 100);
  for (const Sender& sender : {chief_, MakeSender(1, 71, "ps")}) {
    ASSERT_THAT(Watch(sender, 0), IsOk());
    EXPECT_THAT(IndicesIn(Answer()), ElementsAre(0, 1, 2));
  }
  EXPECT_THAT(IndicesIn(Register(chief_)->state()), ElementsAre(0, 1, 2));
  EXPECT_THAT(IndicesIn(Finish(chief_)), ElementsAre(0, 1, 2));
}

TEST_F(CoordinatorMembersTest, JoinsWithinAPause_AreOneAnswerToTheChief) {
  StartRun(1, 100);
  ASSERT_THAT(Register(worker_), IsOk());
  WatchFromNow(chief_);
  for (int i = 2; i < 9; ++i) {
    now_ += absl::Milliseconds(5);
    ASSERT_THAT(Register(MakeSender(i, 100 + i)), IsOk());
    coordinator_.Tick(now_);
    EXPECT_FALSE(IsAnyAnswered());
  }
  EXPECT_EQ(coordinator_.NextDeadline(), now_ + absl::Milliseconds(15));
  now_ += absl::Milliseconds(15);
  coordinator_.Tick(now_);
  EXPECT_EQ(Answer().workers_size(), 9);
}

TEST_F(CoordinatorMembersTest, WhenOthersComeAndGo_AWorkerIsNotTold) {
  StartRun(2, 100);
  WatchFromNow(worker_);
  ASSERT_THAT(Register(MakeSender(2, 102)), IsOk());
  Rest();
  Finish(MakeSender(2, 102));
  now_ += StateVersions::kPause;
  coordinator_.Tick(now_);
  EXPECT_FALSE(IsAnyAnswered());
}

TEST_F(CoordinatorMembersTest, WhenTheChiefLeaves_AWorkerIsToldAtOnce) {
  StartRun(2, 100);
  WatchFromNow(worker_);
  Finish(chief_);
  EXPECT_TRUE(Answer().workers(0).finished());
}

TEST_F(CoordinatorMembersTest, TheEnd_IsToldAtOnce) {
  StartRun(3, 100);
  WatchFromNow(worker_);
  Finish(chief_, /*stop_job=*/true);
  EXPECT_EQ(Answer().phase(), STOPPING);
}

TEST_F(CoordinatorMembersTest, WhoWasRefusedAStep_IsToldWhenSomebodyLeaves) {
  StartRun(3, /*stop_steps=*/1);
  ASSERT_TRUE(Step(chief_, 0).granted());
  ASSERT_FALSE(Step(worker_, 0).granted());
  Rest();
  WatchFromNow(worker_);
  Finish(MakeSender(2, 102));
  EXPECT_TRUE(IsAnyAnswered());
}

TEST_F(CoordinatorMembersTest, AStartThatWasReplaced_IsAnswered) {
  StartRun(2, 100);
  WatchFromNow(worker_);
  ASSERT_THAT(Register(MakeSender(1, 201)), IsOk());
  EXPECT_TRUE(IsAnyAnswered());
  EXPECT_THAT(Watch(worker_, 0),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("replaced by a newer start")));
}

TEST_F(CoordinatorMembersTest, WhoHasToRegisterAgain_IsAnswered) {
  ASSERT_THAT(Register(worker_, "b"), IsOk());
  WatchFromNow(worker_);
  ASSERT_THAT(Register(chief_, "a"), IsOk());
  EXPECT_TRUE(IsAnyAnswered());
}

// Bytes of the answers while `workers` join, one each 5 ms, each of which
// watches from then on; of the workers' and, apart, of the chief's.
class Joins : public CoordinatorMembersTest {
 public:
  explicit Joins(int workers) {
    StartRun(1, 1'000'000);
    WatchAs(0, coordinator_.state_version());
    for (int i = 1; i <= workers; ++i) Join(i);
    for (int i = 0; i < 20; ++i) Wait();
  }

  int64_t worker_bytes() const { return worker_bytes_; }
  int64_t chief_answers() const { return chief_answers_; }

 private:
  void TestBody() override {}

  void Join(int index) {
    const auto reply = Register(MakeSender(index, 100 + index));
    ASSERT_THAT(reply, IsOk());
    worker_bytes_ += reply->ByteSizeLong();
    WatchAs(index, reply->state().state_version());
    Wait();
  }
  void WatchAs(int index, int64_t version) {
    ASSERT_THAT(Watch(MakeSender(index, 100 + index), version, kLong), IsOk());
    watchers_[watch_id_] = index;
  }
  void Wait() {
    now_ += absl::Milliseconds(5);
    coordinator_.Tick(now_);
    for (const WatchAnswer& answer : coordinator_.TakeAnswers(now_)) {
      const int index = watchers_[answer.watch_id];
      (index == 0 ? chief_answers_ : worker_bytes_) +=
          index == 0 ? 1 : answer.state.ByteSizeLong();
      WatchAs(index, answer.state.state_version());
    }
  }

  std::map<uint64_t, int> watchers_;
  int64_t worker_bytes_ = 0;
  int64_t chief_answers_ = 0;
};

TEST(CoordinatorJoinsTest, BytesOfAJoin_DoNotGrowWithTheWorkers) {
  const double of_100 = Joins(100).worker_bytes() / 100.0;
  for (const int workers : {200, 400}) {
    const Joins joins(workers);
    EXPECT_NEAR(joins.worker_bytes() / workers, of_100, 0.2 * of_100);
    // 5 ms a join, and 100 ms after the last.
    EXPECT_LE(joins.chief_answers(), workers / 10 + 2);
  }
}

// ---- AssignTask -----------------------------------------------------------

class AssignTaskTest : public CoordinatorTest {
 protected:
  static AssignTaskRequest Request(uint64_t incarnation) {
    AssignTaskRequest request;
    request.set_protocol_version(kProtocolVersion);
    request.set_incarnation(incarnation);
    return request;
  }

  // Of a worker that was given its index.
  absl::StatusOr<RegisterReply> RegisterNumbered(const Sender& sender) {
    RegisterRequest request;
    request.set_protocol_version(kProtocolVersion);
    *request.mutable_sender() = sender;
    request.set_training_fingerprint(std::hash<std::string>()("a"));
    request.set_training_text("a");
    request.set_is_numbered(true);
    request.set_highest_index(sender.task().index());
    return coordinator_.Register(request, now_);
  }

  // Another start of ps task 0, whose model is restored by a chief that has
  // heard of `highest`; workers of before have had their time to come back.
  void StartRestored(int32_t highest) {
    RegisterRequest request;
    request.set_protocol_version(kProtocolVersion);
    *request.mutable_sender() = chief_;
    request.set_training_fingerprint(std::hash<std::string>()("a"));
    request.set_training_text("a");
    request.set_chief(true);
    request.set_highest_index(highest);
    ASSERT_THAT(coordinator_.Register(request, now_), IsOk());
    epoch_ = Begin(chief_)->model_epoch();
    CommitEpochRequest commit = MakeCommit(chief_, epoch_, 100);
    commit.set_global_step(7);
    ASSERT_THAT(coordinator_.CommitEpoch(commit, now_), IsOk());
    now_ += TaskNumbers::kReturn;
  }
};

TEST_F(AssignTaskTest, AnIndexThatIsGiven_IsToldToTheChief) {
  StartRun(1, 100);
  EXPECT_EQ(coordinator_.State().highest_index(), 0);
  ASSERT_THAT(Watch(chief_, coordinator_.state_version(), absl::Seconds(5)),
              IsOk());
  ASSERT_THAT(coordinator_.AssignTask(Request(101), now_), IsOk());
  now_ += StateVersions::kPause;
  coordinator_.Tick(now_);
  const auto answers = coordinator_.TakeAnswers(now_);
  ASSERT_EQ(answers.size(), 1);
  EXPECT_EQ(answers[0].state.highest_index(), 1);
}

TEST_F(AssignTaskTest, WhoOpensItsDataWhilePsTask0IsRestarted_KeepsItsIndex) {
  StartRestored(/*highest=*/1);
  EXPECT_EQ(coordinator_.AssignTask(Request(104), now_)->index(), 2);
  ASSERT_THAT(RegisterNumbered(worker_), IsOk());
  ASSERT_THAT(RegisterNumbered(MakeSender(2, 104)), IsOk());
  EXPECT_THAT(Watch(worker_, 0), IsOk());
}

// Nobody but the first had heard of its index.
TEST_F(AssignTaskTest, OfTwoWithOneIndex_WhoRegistersFirstKeepsIt) {
  StartRestored(/*highest=*/0);
  EXPECT_EQ(coordinator_.AssignTask(Request(104), now_)->index(), 1);
  ASSERT_THAT(RegisterNumbered(worker_), IsOk());
  const absl::Status second = RegisterNumbered(MakeSender(1, 104)).status();
  EXPECT_EQ(ReasonOf(second), ErrorReason::kReplaced);
  EXPECT_THAT(second.message(), HasSubstr("ask for another one"));
  EXPECT_THAT(Watch(worker_, 0), IsOk());
  EXPECT_EQ(coordinator_.AssignTask(Request(105), now_)->index(), 2);
  EXPECT_EQ(coordinator_.AssignTask(Request(104), now_)->index(), 3);
}

TEST_F(AssignTaskTest, IndexOfOneThatIsLost_IsAnotherStarts) {
  StartRun(2, 100);
  Pass(kTimeout, {chief_});
  EXPECT_NE(RegisterNumbered(MakeSender(1, 104))->takeover(), 0);
}

TEST_F(AssignTaskTest, AWorkerThatRegisters_KeepsItsIndex) {
  StartRun(1, 100);
  const auto first = coordinator_.AssignTask(Request(101), now_);
  ASSERT_THAT(first, IsOk());
  EXPECT_EQ(first->index(), 1);
  ASSERT_THAT(Register(worker_), IsOk());
  now_ += TaskNumbers::kReserved;
  EXPECT_EQ(coordinator_.AssignTask(Request(102), now_)->index(), 2);
  EXPECT_EQ(coordinator_.AssignTask(Request(101), now_)->index(), 1);
}

TEST_F(AssignTaskTest, AfterARestart_IndicesOfLivingWorkersAreNotGiven) {
  ASSERT_THAT(Register(chief_), IsOk());
  EXPECT_TRUE(absl::IsUnavailable(
      coordinator_.AssignTask(Request(104), now_).status()));
  epoch_ = Begin(chief_)->model_epoch();
  CommitEpochRequest commit = MakeCommit(chief_, epoch_, 100);
  commit.set_global_step(7);
  // Worker 2 was there at the checkpoint.
  *commit.add_workers()->mutable_sender() = MakeSender(2, 0);
  ASSERT_THAT(coordinator_.CommitEpoch(commit, now_), IsOk());
  EXPECT_TRUE(absl::IsUnavailable(
      coordinator_.AssignTask(Request(104), now_).status()));
  ASSERT_THAT(Register(worker_), IsOk());
  now_ += TaskNumbers::kReturn;
  EXPECT_EQ(coordinator_.AssignTask(Request(104), now_)->index(), 3);
}

TEST_F(AssignTaskTest, WhoWaitsForAnIndex_IsStayedForToLearnOfTheEnd) {
  ASSERT_THAT(Register(chief_), IsOk());
  epoch_ = Begin(chief_)->model_epoch();
  CommitEpochRequest commit = MakeCommit(chief_, epoch_, 100);
  commit.set_global_step(7);
  ASSERT_THAT(coordinator_.CommitEpoch(commit, now_), IsOk());
  for (const uint64_t incarnation : {104, 105}) {
    EXPECT_TRUE(absl::IsUnavailable(
        coordinator_.AssignTask(Request(incarnation), now_).status()));
  }
  coordinator_.TakeLines();
  ASSERT_EQ(Finish(chief_, /*stop_job=*/true).phase(), DONE);
  EXPECT_THAT(coordinator_.TakeLines(),
              ElementsAre(HasSubstr("for 2 workers that are on the way")));
  EXPECT_EQ(coordinator_.AssignTask(Request(104), now_)->job_end(),
            "done (/job:worker/task:0), at step 7");
  EXPECT_FALSE(coordinator_.EndIsKnown());
  EXPECT_EQ(coordinator_.AssignTask(Request(105), now_)->job_end(),
            "done (/job:worker/task:0), at step 7");
  EXPECT_TRUE(coordinator_.EndIsKnown());
}

TEST_F(AssignTaskTest, WhoHasAnIndexAndIsNoMemberYet_IsStayedFor) {
  StartRun(1, 100);
  ASSERT_THAT(coordinator_.AssignTask(Request(101), now_), IsOk());
  ASSERT_EQ(Finish(chief_, /*stop_job=*/true).phase(), DONE);
  EXPECT_FALSE(coordinator_.EndIsKnown());
  ASSERT_THAT(Register(worker_), IsOk());
  EXPECT_TRUE(coordinator_.EndIsKnown());
}

TEST_F(AssignTaskTest, WhoDoesNotComeBack_IsStayedForOnlyForAWhile) {
  StartRun(1, 100);
  ASSERT_THAT(coordinator_.AssignTask(Request(101), now_), IsOk());
  ASSERT_EQ(Finish(chief_, /*stop_job=*/true).phase(), DONE);
  EXPECT_FALSE(coordinator_.EndIsKnown());
  Pass(kTimeout);
  EXPECT_TRUE(coordinator_.EndIsKnown());
}

TEST_F(AssignTaskTest, AnotherProtocolOrNoIncarnation_IsRefused) {
  AssignTaskRequest request = Request(101);
  request.set_protocol_version(kProtocolVersion + 1);
  EXPECT_THAT(coordinator_.AssignTask(request, now_),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("assign a task: it speaks protocol")));
  EXPECT_THAT(coordinator_.AssignTask(Request(0), now_),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST_F(AssignTaskTest, AClusterThatListsItsWorkers_Refuses) {
  CoordinatorOptions options;
  JobDef* const ps = options.cluster.add_job();
  ps->set_name("ps");
  (*ps->mutable_tasks())[0] = "host:1";
  EXPECT_TRUE(absl::IsUnavailable(
      Coordinator(options).AssignTask(Request(101), now_).status()));
  JobDef* const workers = options.cluster.add_job();
  workers->set_name("worker");
  EXPECT_TRUE(absl::IsUnavailable(
      Coordinator(options).AssignTask(Request(101), now_).status()));
  (*workers->mutable_tasks())[0] = "host:2";
  EXPECT_THAT(Coordinator(options).AssignTask(Request(101), now_),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("the cluster lists its workers: start with "
                                 "--task_index=N")));
}

}  // namespace
}  // namespace muster
