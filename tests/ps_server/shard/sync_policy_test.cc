#include "ps_server/shard/sync_policy.h"

#include <limits>
#include <random>
#include <tuple>

#include "absl/functional/function_ref.h"
#include "gmock/gmock.h"
#include "ps_server/caller/count_range.h"
#include "ps_server/shard/push_context.h"
#include "tests/ps_server/shard/sync_shard.h"

namespace muster {
namespace {

using ::testing::Combine;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Values;

std::vector<float> Gradient(float value) {
  return std::vector<float>(kModel, value);
}

// A shard with learning rate 1 and two workers that have the token of round 1.
class SyncPolicyTest : public testing::Test {
 protected:
  SyncPolicyTest() : shard_(SyncShard::MakeSyncModel()) {
    for (const Sender& worker : {a_, b_}) {
      EXPECT_THAT(shard_.Hello(worker), IsOk());
      EXPECT_THAT(shard_.Pull(worker, MakeToken(1)), IsOk());
    }
  }

  absl::StatusOr<Frame<PushReply>> Push(const Sender& sender, int64_t step,
                                        int64_t round, float value,
                                        SyncShard::Part part) {
    return shard_.shard().Push(
        shard_.MakePart(sender, step, round, Gradient(value), part));
  }

  // The first of the weights after `token`.
  float WeightAfter(const StepToken& token) {
    const auto values = shard_.Pull(shard_.chief(), token);
    EXPECT_THAT(values, IsOk());
    return values.ok() ? values->front() : 0;
  }

  absl::StatusOr<BeginSnapshotReply> Cut(const StepToken& token) {
    BeginSnapshotRequest request;
    *request.mutable_sender() = shard_.chief();
    *request.mutable_fence() = MakeFence();
    *request.mutable_token() = token;
    return shard_.shard().BeginSnapshot(request);
  }

  const Sender a_ = MakeSender(1, 101);
  const Sender b_ = MakeSender(2, 102);
  SyncShard shard_;
};

TEST_F(SyncPolicyTest, AppliesTheMeanOfTheChosenWithTheToken) {
  shard_.PushStep(a_, 1, 1, Gradient(-2));
  shard_.PushStep(b_, 1, 1, Gradient(-4));
  EXPECT_EQ(WeightAfter(MakeToken(1)), 1) << "applied before its token";
  const auto values =
      shard_.Pull(a_, MakeToken(2, {MakeChosen(a_, 1), MakeChosen(b_, 1)}));
  ASSERT_THAT(values, IsOk());
  EXPECT_EQ(values->front(), 4);
  EXPECT_EQ(values->back(), -2) << "a state tensor has the mean delta added";
  EXPECT_EQ(shard_.shard().State().version(), 1);
  EXPECT_EQ(shard_.shard().counters().steps, 1);
  EXPECT_EQ(shard_.shard().counters().staleness_max, 0);
}

// All parts of a step, with this factor of the learning rate.
class SyncPolicyFactorTest : public SyncPolicyTest {
 protected:
  void PushWithFactor(const Sender& sender, float value, double factor) {
    for (const auto part : {SyncShard::kFirstBlock, SyncShard::kSecondBlock,
                            SyncShard::kAverage}) {
      EXPECT_THAT(PushPartWithFactor(sender, value, factor, part), IsOk());
    }
  }
  absl::StatusOr<Frame<PushReply>> PushPartWithFactor(const Sender& sender,
                                                      float value,
                                                      double factor,
                                                      SyncShard::Part part) {
    Frame<PushPart> push = shard_.MakePart(sender, 1, 1, Gradient(value), part);
    push.header.set_learning_rate_factor(factor);
    return shard_.shard().Push(push);
  }
};

TEST_F(SyncPolicyFactorTest, AnUpdateIsMadeWithTheFactorOfItsGradients) {
  PushWithFactor(a_, -2, 0.5);
  PushWithFactor(b_, -4, 0.5);
  const auto values =
      shard_.Pull(a_, MakeToken(2, {MakeChosen(a_, 1), MakeChosen(b_, 1)}));
  ASSERT_THAT(values, IsOk());
  EXPECT_EQ(values->front(), 2.5) << "1 + 0.5 * 3";
  EXPECT_EQ(values->back(), -2) << "a state tensor has no rate";
}

// A schedule may warm up from the optimizer's rate.
TEST_F(SyncPolicyFactorTest, AFactorAboveOne_Applies) {
  PushWithFactor(a_, -2, 8);
  const auto values = shard_.Pull(a_, MakeToken(2, {MakeChosen(a_, 1)}));
  ASSERT_THAT(values, IsOk());
  EXPECT_EQ(values->front(), 17) << "1 + 8 * 2";
}

TEST_F(SyncPolicyFactorTest, AnUpdateOfTwoFactorsHasThatOfTheLowestIndex) {
  PushWithFactor(a_, -2, 0.5);
  PushWithFactor(b_, -4, 0.25);
  const auto values =
      shard_.Pull(a_, MakeToken(2, {MakeChosen(b_, 1), MakeChosen(a_, 1)}));
  ASSERT_THAT(values, IsOk());
  EXPECT_EQ(values->front(), 2.5) << "1 + 0.5 * 3";
}

TEST_F(SyncPolicyFactorTest, OnlyAFactorThatIsChosenCounts) {
  PushWithFactor(a_, -2, 0.5);
  PushWithFactor(b_, -4, 0.25);
  const auto values = shard_.Pull(a_, MakeToken(2, {MakeChosen(b_, 1)}));
  ASSERT_THAT(values, IsOk());
  EXPECT_EQ(values->front(), 2) << "1 + 0.25 * 4";
}

TEST_F(SyncPolicyFactorTest, PartsOfOneStepHaveOneFactor) {
  ASSERT_THAT(PushPartWithFactor(a_, -2, 0.5, SyncShard::kFirstBlock), IsOk());
  EXPECT_THAT(PushPartWithFactor(a_, -2, 0.25, SyncShard::kSecondBlock),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("factor of the learning rate is 0.25")));
}

TEST_F(SyncPolicyFactorTest, WhatIsNoFactorIsRefused) {
  for (const double factor :
       {-0.5, 1.5e6, std::numeric_limits<double>::infinity(),
        std::numeric_limits<double>::quiet_NaN()}) {
    EXPECT_THAT(PushPartWithFactor(a_, -2, factor, SyncShard::kFirstBlock),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("factor of the learning rate")));
  }
}

TEST_F(SyncPolicyTest, AStateTensorDecaysOnceARound) {
  DefineRequest define = SyncShard::MakeSyncModel();
  define.mutable_tensors(1)->set_decay(0.5F);
  SyncShard shard(define);
  for (const Sender& worker : {a_, b_}) {
    ASSERT_THAT(shard.Hello(worker), IsOk());
    ASSERT_THAT(shard.Pull(worker, MakeToken(1)), IsOk());
  }
  shard.PushStep(a_, 1, 1, Gradient(2));
  shard.PushStep(b_, 1, 1, Gradient(4));
  const auto values =
      shard.Pull(a_, MakeToken(2, {MakeChosen(a_, 1), MakeChosen(b_, 1)}));
  ASSERT_THAT(values, IsOk());
  EXPECT_EQ(values->back(), 1 - 0.5F + 3);
}

// An update is made block by block as values are asked for.
class SyncPolicyPartlyReadTest : public SyncPolicyTest {
 protected:
  // After the first round, of which `a_` has read the second block only.
  SyncPolicyPartlyReadTest() {
    shard_.PushStep(a_, 1, 1, Gradient(-2));
    PullRequest request =
        MakePull(a_, {MakeSlice("weights", kBlockElements, 3)});
    *request.mutable_token() = token_;
    const auto read = shard_.shard().Pull(request);
    EXPECT_THAT(read, IsOk());
    EXPECT_EQ(ValuesOf<float>(read->data)[0], 3);
    EXPECT_EQ(shard_.shard().State().version(), 1);
  }

  float InMemory(int64_t element) {
    const auto memory =
        shard_.shard().ParametersInPlace(MakeFence().model_epoch());
    EXPECT_THAT(memory, IsOk());
    return reinterpret_cast<const float*>((*memory)->data())[element];
  }

  // The first value of `slot` of the weights, and the state tensor's, in the
  // snapshot.
  std::pair<float, float> InSnapshot(uint64_t snapshot) {
    std::pair<float, float> values;
    for (const auto& [tensor, value] : {std::pair("weights", &values.first),
                                        std::pair("average", &values.second)}) {
      ReadSnapshotRequest request;
      *request.mutable_sender() = shard_.chief();
      *request.mutable_fence() = MakeFence();
      request.set_snapshot(snapshot);
      *request.add_slices() = MakeSlice(tensor, 0, 1);
      const auto part = shard_.shard().ReadSnapshot(request);
      EXPECT_THAT(part, IsOk());
      if (part.ok()) *value = ValuesOf<float>(part->data)[0];
    }
    return values;
  }

  const StepToken token_ = MakeToken(2, {MakeChosen(a_, 1)});
};

TEST_F(SyncPolicyPartlyReadTest, WhoHasNoTokenReadsAllOfIt) {
  const auto values = shard_.Pull(shard_.chief(), StepToken());
  ASSERT_THAT(values, IsOk());
  EXPECT_EQ(values->front(), 3);
  EXPECT_EQ((*values)[kBlockElements], 3) << "twice";
  EXPECT_EQ(values->back(), -1) << "the state tensor";
}

TEST_F(SyncPolicyPartlyReadTest, InPlaceTheValuesAreThereWithTheAnswer) {
  EXPECT_EQ(InMemory(0), 1);
  PullRequest request = MakePull(b_, {MakeSlice("weights", 0, 1)});
  *request.mutable_token() = token_;
  request.set_in_place(true);
  const auto read = shard_.shard().Pull(request);
  ASSERT_THAT(read, IsOk());
  EXPECT_EQ(read->data.size(), 0);
  EXPECT_EQ(read->header.version(), 1);
  EXPECT_EQ(InMemory(0), 3);
}

TEST_F(SyncPolicyPartlyReadTest, InPlaceNothingChangesBeforeTheRoundsEnd) {
  ASSERT_THAT(shard_.Pull(a_, token_), IsOk());
  shard_.PushStep(a_, 2, 2, Gradient(-4));
  shard_.PushStep(b_, 2, 2, Gradient(-4));
  EXPECT_EQ(InMemory(0), 3);
  EXPECT_EQ(InMemory(kBlockElements), 3);
}

TEST_F(SyncPolicyPartlyReadTest, ACutHasAllOfIt) {
  const auto cut = Cut(token_);
  ASSERT_THAT(cut, IsOk());
  EXPECT_EQ(InSnapshot(cut->snapshot()), std::pair(3.0F, -1.0F));
}

TEST_F(SyncPolicyPartlyReadTest, ACutBeforeItHasNothingOfIt) {
  const auto cut = Cut(token_);
  ASSERT_THAT(cut, IsOk());
  shard_.PushStep(a_, 2, 2, Gradient(-4));
  EXPECT_EQ(WeightAfter(MakeToken(3, {MakeChosen(a_, 2)})), 7);
  EXPECT_EQ(InSnapshot(cut->snapshot()), std::pair(3.0F, -1.0F));
}

TEST_F(SyncPolicyPartlyReadTest, TheNextRoundGoesOnFromAllOfIt) {
  shard_.PushStep(b_, 1, 2, Gradient(-1));
  EXPECT_EQ(WeightAfter(MakeToken(3, {MakeChosen(b_, 1)})), 4);
}

TEST_F(SyncPolicyPartlyReadTest, APushIsCheckedAgainstAllOfIt) {
  constexpr float kMost = std::numeric_limits<float>::max();
  ASSERT_THAT(Push(a_, 2, 2, -kMost, SyncShard::kAverage), IsOk());
  ASSERT_THAT(Push(a_, 2, 2, 0, SyncShard::kFirstBlock), IsOk());
  ASSERT_THAT(Push(a_, 2, 2, 0, SyncShard::kSecondBlock), IsOk());
  PullRequest request = MakePull(a_, {MakeSlice("weights", 0, 1)});
  *request.mutable_token() = MakeToken(3, {MakeChosen(a_, 2)});
  ASSERT_THAT(shard_.shard().Pull(request), IsOk());
  EXPECT_THAT(Push(a_, 3, 3, -kMost, SyncShard::kAverage),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("would become infinite")));
}

TEST_F(SyncPolicyTest, LeavesOutWhatWasNotChosen) {
  shard_.PushStep(a_, 1, 1, Gradient(-2));
  shard_.PushStep(b_, 1, 1, Gradient(-4));
  EXPECT_EQ(WeightAfter(MakeToken(2, {MakeChosen(b_, 1)})), 5);
}

TEST_F(SyncPolicyTest, ATokenCountsOnce) {
  shard_.PushStep(a_, 1, 1, Gradient(-2));
  const StepToken token = MakeToken(2, {MakeChosen(a_, 1)});
  for (int i = 0; i < 3; ++i) EXPECT_EQ(WeightAfter(token), 3);
  EXPECT_EQ(WeightAfter(MakeToken(1)), 3) << "an older token";
  EXPECT_EQ(WeightAfter(StepToken()), 3) << "none";
}

TEST_F(SyncPolicyTest, DropsWhatComesLateAndSaysSoAgain) {
  shard_.PushStep(a_, 1, 1, Gradient(-2));
  const auto in_time = Push(b_, 1, 1, -8, SyncShard::kFirstBlock);
  ASSERT_THAT(in_time, IsOk());
  EXPECT_FALSE(in_time->header.late());
  EXPECT_EQ(WeightAfter(MakeToken(2, {MakeChosen(a_, 1)})), 3);
  for (const bool duplicate : {false, true}) {
    const auto reply = Push(b_, 1, 1, -8, SyncShard::kAverage);
    ASSERT_THAT(reply, IsOk());
    EXPECT_TRUE(reply->header.late());
    EXPECT_EQ(reply->header.duplicate(), duplicate);
  }
  EXPECT_EQ(shard_.shard().counters().late_parts, 1);
  // Neither is in the next update.
  shard_.PushStep(a_, 2, 2, Gradient(-1));
  EXPECT_EQ(WeightAfter(MakeToken(3, {MakeChosen(a_, 2)})), 4);
}

TEST_F(SyncPolicyTest, AStepThatIsNotWholeIsAnErrorAndChangesNothing) {
  shard_.PushStep(a_, 1, 1, Gradient(-2));
  ASSERT_THAT(Push(b_, 1, 1, -8, SyncShard::kFirstBlock), IsOk());
  for (const ChosenStep& missing :
       {MakeChosen(b_, 1), MakeChosen(a_, 2), MakeChosen(MakeSender(1, 9), 1),
        MakeChosen(MakeSender(7, 9), 1)}) {
    EXPECT_THAT(
        shard_.Pull(a_, MakeToken(2, {MakeChosen(shard_.chief(), 1), missing})),
        StatusIs(absl::StatusCode::kInternal, HasSubstr("not whole here")));
    EXPECT_THAT(shard_.Pull(a_, MakeToken(2, {missing})),
                StatusIs(absl::StatusCode::kInternal,
                         HasSubstr(TaskName(missing.sender()))));
  }
  EXPECT_THAT(
      shard_.Pull(a_, MakeToken(2, {MakeChosen(a_, 1), MakeChosen(a_, 1)})),
      StatusIs(absl::StatusCode::kInternal, HasSubstr("twice")));
  EXPECT_THAT(shard_.Pull(a_, MakeToken(2)),
              StatusIs(absl::StatusCode::kInternal, HasSubstr("no gradient")));
  EXPECT_THAT(shard_.Pull(a_, MakeToken(3, {MakeChosen(a_, 1)})),
              StatusIs(absl::StatusCode::kInternal, HasSubstr("never told")));
  EXPECT_EQ(WeightAfter(MakeToken(1)), 1);
  EXPECT_EQ(WeightAfter(MakeToken(2, {MakeChosen(a_, 1)})), 3);
}

// A worker's push may begin before it is decided whether the step is pushed.
TEST_F(SyncPolicyTest, AStepThatWasGivenUpInMidPushIsInNoUpdate) {
  ASSERT_THAT(Push(a_, 1, 1, -8, SyncShard::kFirstBlock), IsOk());
  ASSERT_THAT(Push(a_, 1, 1, -8, SyncShard::kAverage), IsOk());
  ASSERT_THAT(Push(a_, 2, 1, -2, SyncShard::kFirstBlock), IsOk());
  // The rest of the first step comes now.
  const auto late = Push(a_, 1, 1, -8, SyncShard::kSecondBlock);
  ASSERT_THAT(late, IsOk());
  EXPECT_TRUE(late->header.duplicate());
  ASSERT_THAT(Push(a_, 2, 1, -2, SyncShard::kSecondBlock), IsOk());
  ASSERT_THAT(Push(a_, 2, 1, -2, SyncShard::kAverage), IsOk());
  EXPECT_EQ(WeightAfter(MakeToken(2, {MakeChosen(a_, 2)})), 3);
}

TEST_F(SyncPolicyTest, APushNeedsItsRoundsPull) {
  EXPECT_THAT(
      Push(a_, 1, 2, 1, SyncShard::kAverage),
      StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("pull")));
  EXPECT_THAT(
      Push(a_, 1, 0, 1, SyncShard::kAverage),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("no round")));
  SyncShard fresh(SyncShard::MakeSyncModel());
  EXPECT_THAT(fresh.shard().Push(fresh.MakePart(
                  fresh.chief(), 1, 1, Gradient(1), SyncShard::kAverage)),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("seen no token")));
  Frame<PushPart> stale =
      shard_.MakePart(a_, 2, 2, Gradient(1), SyncShard::kAverage);
  shard_.PushStep(a_, 1, 1, Gradient(-2));
  EXPECT_EQ(WeightAfter(MakeToken(2, {MakeChosen(a_, 1)})), 3);
  EXPECT_THAT(shard_.shard().Push(stale),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("1 updates before")));
}

constexpr int64_t kNoRounds[] = {-1, std::numeric_limits<int64_t>::min(),
                                 kMaxCount + 1,
                                 std::numeric_limits<int64_t>::max()};

// One that was taken for the first would make all that follows late.
TEST_F(SyncPolicyTest, ATokenOfANumberThatIsNoRoundChangesNothing) {
  SyncShard fresh(SyncShard::MakeSyncModel());
  ASSERT_THAT(fresh.Hello(a_), IsOk());
  for (const int64_t round : kNoRounds) {
    EXPECT_THAT(
        fresh.Pull(a_, MakeToken(round)),
        StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("token")));
    EXPECT_THAT(
        Cut(MakeToken(round)),
        StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("token")));
  }
  ASSERT_THAT(fresh.Pull(a_, MakeToken(1)), IsOk());
  const auto pushed = fresh.shard().Push(
      fresh.MakePart(a_, 1, 1, Gradient(1), SyncShard::kAverage));
  ASSERT_THAT(pushed, IsOk());
  EXPECT_FALSE(pushed->header.late());
}

TEST_F(SyncPolicyTest, RefusesAPartOfANumberThatIsNoRound) {
  for (const int64_t round : kNoRounds) {
    EXPECT_THAT(
        Push(a_, 1, round, 1, SyncShard::kAverage),
        StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("round")));
  }
}

TEST_F(SyncPolicyTest, AGradientHasEachBlockOnce) {
  ASSERT_THAT(Push(a_, 1, 1, 1, SyncShard::kAverage), IsOk());
  Frame<PushPart> again =
      shard_.MakePart(a_, 1, 1, Gradient(1), SyncShard::kAverage);
  again.header.set_part(0);
  EXPECT_THAT(shard_.shard().Push(again),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("block of 'average' already")));
  Frame<PushPart> only = again;
  *only.header.mutable_sender() = b_;
  only.header.set_parts(1);
  EXPECT_THAT(shard_.shard().Push(only),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("1 of the 3 blocks")));
}

TEST_F(SyncPolicyTest, KeepsOneGradientForEachTask) {
  SyncShard small(SyncShard::MakeSyncModel(), kModel * sizeof(float) + 8);
  for (const Sender& worker : {a_, b_}) {
    ASSERT_THAT(small.Hello(worker), IsOk());
    ASSERT_THAT(small.Pull(worker, MakeToken(1)), IsOk());
  }
  for (int64_t step = 1; step < 5; ++step) {
    small.PushStep(a_, step, 1, Gradient(static_cast<float>(-step)));
  }
  const Sender successor = MakeSender(1, 555);
  ASSERT_THAT(small.Hello(successor), IsOk());
  small.PushStep(successor, 1, 1, Gradient(-10));
  EXPECT_THAT(small.shard().Push(small.MakePart(b_, 1, 1, Gradient(1),
                                                SyncShard::kSecondBlock)),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("gradients of this round")));
  const auto values = small.Pull(b_, MakeToken(2, {MakeChosen(successor, 1)}));
  ASSERT_THAT(values, IsOk());
  EXPECT_EQ(values->front(), 11);
  EXPECT_THAT(small.Pull(b_, MakeToken(2)), IsOk());
}

// Half of what the parameters leave.
TEST_F(SyncPolicyTest, GradientsTakeNoMoreThanTheModelLeaves) {
  constexpr int64_t kModelBytes = kModel * sizeof(float);
  for (const int64_t short_of : {0, 2}) {
    SyncShard small(SyncShard::MakeSyncModel(), int64_t{1} << 30,
                    3 * kModelBytes - short_of);
    ASSERT_THAT(small.Hello(a_), IsOk());
    ASSERT_THAT(small.Pull(a_, MakeToken(1)), IsOk());
    absl::Status pushed;
    for (const SyncShard::Part part :
         {SyncShard::kFirstBlock, SyncShard::kSecondBlock,
          SyncShard::kAverage}) {
      pushed.Update(small.shard()
                        .Push(small.MakePart(a_, 1, 1, Gradient(1), part))
                        .status());
    }
    EXPECT_THAT(pushed,
                StatusIs(short_of == 0 ? absl::StatusCode::kOk
                                       : absl::StatusCode::kResourceExhausted));
  }
}

// Parts whose bytes lie in memory of their own.
class SyncPolicyOwnMemoryTest : public SyncPolicyTest {
 protected:
  // Values would be written to where the gradient lies.
  void PushAll(float value, bool wants_values) {
    for (const SyncShard::Part part :
         {SyncShard::kFirstBlock, SyncShard::kSecondBlock,
          SyncShard::kAverage}) {
      Frame<PushPart> push = shard_.MakePart(a_, 1, 1, Gradient(value), part);
      push.header.set_wants_values(wants_values);
      std::string& memory = memory_[part];
      memory = std::string(push.data);
      push.data = absl::MakeCordFromExternal(memory, [] {});
      PushContext context;
      context.has_own_memory = true;
      context.memory = [&memory](size_t size_bytes,
                                 absl::FunctionRef<void(char*)> fill) {
        EXPECT_EQ(size_bytes, memory.size());
        fill(memory.data());
        return absl::Cord(memory);
      };
      EXPECT_THAT(shard_.shard().Push(push, context), IsOk());
    }
  }

  std::string memory_[SyncShard::kParts];
};

TEST_F(SyncPolicyOwnMemoryTest, AGradientStaysThereUntilItsRound) {
  PushAll(-2, /*wants_values=*/false);
  for (std::string& memory : memory_) {
    const std::vector<float> other(memory.size() / sizeof(float), -6);
    memory.replace(0, memory.size(), std::string(BytesOf(other)));
  }
  EXPECT_EQ(WeightAfter(MakeToken(2, {MakeChosen(a_, 1)})), 7) << "not copied";
}

TEST_F(SyncPolicyOwnMemoryTest, AGradientThatValuesReplaceIsCopied) {
  PushAll(-2, /*wants_values=*/true);
  EXPECT_EQ(ValuesOf<float>(absl::Cord(memory_[0])).front(), 1);
  EXPECT_EQ(WeightAfter(MakeToken(2, {MakeChosen(a_, 1)})), 3);
}

TEST_F(SyncPolicyTest, RefusesWhatIsNotFinite) {
  EXPECT_THAT(Push(a_, 1, 1, std::numeric_limits<float>::infinity(),
                   SyncShard::kAverage),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("nothing was changed")));
}

TEST_F(SyncPolicyTest, CutsExactlyAfterItsUpdate) {
  shard_.PushStep(a_, 1, 1, Gradient(-2));
  const StepToken after_1 = MakeToken(2, {MakeChosen(a_, 1)});
  const auto cut = Cut(after_1);
  ASSERT_THAT(cut, IsOk());
  EXPECT_EQ(cut->version(), 1);
  ASSERT_EQ(cut->marks_size(), 1);
  EXPECT_EQ(cut->marks(0).step(), 1);
  EXPECT_THAT(cut->marks(0).parts(), ElementsAre(0, 1, 2));
  // A step that is pushed now is in no mark until it is chosen.
  shard_.PushStep(a_, 2, 2, Gradient(-1));
  shard_.PushStep(b_, 1, 2, Gradient(-1));
  const auto again = Cut(after_1);
  ASSERT_THAT(again, IsOk());
  EXPECT_EQ(again->marks_size(), 1);
  EXPECT_EQ(WeightAfter(MakeToken(3, {MakeChosen(a_, 2)})), 4);
  const auto read = shard_.shard().ReadSnapshot(
      MakeRead(shard_.chief(), again->snapshot(), MakeSlice("weights", 0, 1)));
  ASSERT_THAT(read, IsOk());
  EXPECT_THAT(ValuesOf<float>(read->data), ElementsAre(3));
  EXPECT_THAT(Cut(after_1), StatusIs(absl::StatusCode::kAborted,
                                     HasSubstr("is at update 2")));
  EXPECT_THAT(Cut(StepToken()), StatusIs(absl::StatusCode::kInvalidArgument,
                                         HasSubstr("PauseRounds")));
}

TEST_F(SyncPolicyTest, ARestoredShardGoesOnFromItsUpdate) {
  SyncShard restored(SyncShard::MakeSyncModel());
  ASSERT_THAT(restored.Hello(a_), IsOk());
  EXPECT_THAT(restored.Pull(a_, MakeToken(8, {MakeChosen(a_, 1)})),
              StatusIs(absl::StatusCode::kInternal, HasSubstr("no token")));
  ASSERT_THAT(restored.Pull(a_, MakeToken(7)), IsOk());
  restored.PushStep(a_, 1, 7, Gradient(-2));
  const auto values = restored.Pull(a_, MakeToken(8, {MakeChosen(a_, 1)}));
  ASSERT_THAT(values, IsOk());
  EXPECT_EQ(values->front(), 3);
}

TEST(SyncPolicyOnAnEmptyShardTest, FollowsEveryToken) {
  SyncPolicy policy(1000);
  const TensorTable none;
  class NoApplier : public PartApplier {
   public:
    bool Apply(const PushedPart&) override {
      ADD_FAILURE();
      return false;
    }
    void ApplyToBlocks(absl::Span<const CheckedSlice>, double,
                       BlockGradient) override {
      FAIL();
    }
    void ApplyRows(const CheckedRows&, double) override { ADD_FAILURE(); }
    void CountUpdate() override { FAIL(); }
  } applier;
  const StepToken token = MakeToken(9, {MakeChosen(MakeSender(1, 1), 4)});
  EXPECT_THAT(policy.OnCut("cut", token, none, applier), IsOk());
  EXPECT_THAT(policy.OnCut("cut", MakeToken(8), none, applier),
              StatusIs(absl::StatusCode::kAborted));
}

// ---- Equal to one process ---------------------------------------------------

constexpr int kRounds = 4;

// optimizer, workers, codec, seed
class SyncExactnessTest : public testing::TestWithParam<
                              std::tuple<std::string, int, std::string, int>> {
 protected:
  SyncExactnessTest()
      : shard_(SyncShard::MakeSyncModel(std::get<0>(GetParam()))),
        single_(SyncShard::MakeModel(std::get<0>(GetParam()))),
        random_(std::get<3>(GetParam())) {
    for (int i = 0; i < std::get<1>(GetParam()); ++i) {
      workers_.push_back(MakeSender(i + 1, 200 + i));
      EXPECT_THAT(shard_.Hello(workers_.back()), IsOk());
    }
    const auto codec = FindCodec(std::get<2>(GetParam()));
    EXPECT_THAT(codec, IsOk());
    codec_ = codec.value_or(nullptr);
  }

  // Small whole numbers: their sums are exact, and so is each codec.
  std::vector<float> RandomGradient() {
    std::vector<float> gradient(kModel);
    for (float& value : gradient) {
      value = static_cast<float>(static_cast<int>(random_() % 17) - 8);
    }
    return gradient;
  }

  // Pushes all gradients, part by part in a random order, each once or twice,
  // with pulls and cuts in between.
  void PushAll(int64_t round, const std::vector<std::vector<float>>& gradients,
               const StepToken& token) {
    std::vector<Frame<PushPart>> parts;
    for (size_t i = 0; i < workers_.size(); ++i) {
      for (const auto part : {SyncShard::kFirstBlock, SyncShard::kSecondBlock,
                              SyncShard::kAverage}) {
        parts.push_back(shard_.MakePart(workers_[i], round, round, gradients[i],
                                        part, codec_));
        if (random_() % 2 == 0) parts.push_back(parts.back());
      }
    }
    std::shuffle(parts.begin(), parts.end(), random_);
    for (const Frame<PushPart>& part : parts) {
      ASSERT_THAT(shard_.shard().Push(part), IsOk());
      if (random_() % 4 == 0) {
        ASSERT_THAT(shard_.Pull(workers_[0], token), IsOk());
      }
      if (random_() % 8 == 0) {
        BeginSnapshotRequest cut;
        *cut.mutable_sender() = shard_.chief();
        *cut.mutable_fence() = MakeFence();
        *cut.mutable_token() = token;
        ASSERT_THAT(shard_.shard().BeginSnapshot(cut), IsOk());
      }
    }
  }

  // One process with the batches of all: the sum, divided once.
  std::vector<float> Mean(const std::vector<std::vector<float>>& gradients) {
    std::vector<float> mean(kModel, 0);
    for (const std::vector<float>& gradient : gradients) {
      for (int64_t i = 0; i < kModel; ++i) mean[i] += gradient[i];
    }
    for (float& value : mean) value /= static_cast<float>(gradients.size());
    return mean;
  }

  SyncShard shard_;
  SyncShard single_;
  std::mt19937 random_;
  std::vector<Sender> workers_;
  const Codec* codec_ = nullptr;
};

TEST_P(SyncExactnessTest, IsBitForBitOneProcess) {
  StepToken token = MakeToken(1);
  for (int64_t round = 1; round <= kRounds; ++round) {
    for (const Sender& worker : workers_) {
      ASSERT_THAT(shard_.Pull(worker, token), IsOk());
    }
    std::vector<std::vector<float>> gradients;
    for (size_t i = 0; i < workers_.size(); ++i) {
      gradients.push_back(RandomGradient());
    }
    PushAll(round, gradients, token);
    single_.PushStep(single_.chief(), round, /*round=*/0, Mean(gradients));
    token = MakeToken(round + 1);
    for (const Sender& worker : workers_) {
      *token.add_chosen() = MakeChosen(worker, round);
    }
  }
  const auto together = shard_.Pull(workers_[0], token);
  const auto alone = single_.Pull(single_.chief(), StepToken());
  ASSERT_THAT(together, IsOk());
  ASSERT_THAT(alone, IsOk());
  EXPECT_TRUE(*together == *alone);
  EXPECT_EQ(shard_.shard().State().version(), kRounds);
}

INSTANTIATE_TEST_SUITE_P(Rules, SyncExactnessTest,
                         Combine(Values("sgd", "momentum", "adam"),
                                 Values(1, 2, 3), Values("", "bf16", "fp16"),
                                 Values(1)));

// The sum is made in the token's order, not in that of arrival.
TEST(SyncOrderTest, TheOrderOfArrivalDoesNotMatter) {
  // 1e8 + 1 is 1e8 in float, so that the order of the three matters.
  const std::vector<float> values = {1e8F, 1.0F, -1e8F};
  std::vector<int> arrival = {0, 1, 2};
  const float in_order = (values[0] + values[1] + values[2]) / 3.0F;
  do {
    SyncShard shard(SyncShard::MakeSyncModel());
    StepToken token = MakeToken(2);
    for (int i = 0; i < 3; ++i) {
      const Sender worker = MakeSender(i + 1, 200 + i);
      ASSERT_THAT(shard.Hello(worker), IsOk());
      ASSERT_THAT(shard.Pull(worker, MakeToken(1)), IsOk());
      *token.add_chosen() = MakeChosen(worker, 1);
    }
    for (const int i : arrival) {
      shard.PushStep(MakeSender(i + 1, 200 + i), 1, 1, Gradient(-values[i]));
    }
    const auto pulled = shard.Pull(shard.chief(), token);
    ASSERT_THAT(pulled, IsOk());
    EXPECT_EQ(pulled->front(), 1 + in_order);
  } while (std::next_permutation(arrival.begin(), arrival.end()));
}

}  // namespace
}  // namespace muster
