#include "ps_server/shard/parameter_shard.h"

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "absl/base/config.h"
#include "absl/strings/match.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/ps_server/shard/shard_requests.h"
#include "tests/testing/copied_frame.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

ShardOptions TestOptions() {
  ShardOptions options;
  options.incarnation = kPsIncarnation;
  options.max_bytes = 64 << 20;
  return options;
}

// A shard with a chief and a worker that have said Hello.
class ParameterShardTest : public testing::Test {
 protected:
  ParameterShardTest() : shard_(TestOptions()) {
    EXPECT_THAT(shard_.Hello(MakeHello(chief_)), IsOk());
    EXPECT_THAT(shard_.Hello(MakeHello(worker_)), IsOk());
  }

  // Defines, loads zeros into every tensor and seals.
  void MakeReady(const std::vector<TensorDef>& tensors, int64_t epoch = 1) {
    DefineRequest define = MakeDefine(chief_, tensors, epoch);
    if (in_place_) {
      define.mutable_replication()->mutable_async()->set_pull(IN_PLACE);
    }
    ASSERT_THAT(shard_.Define(define), IsOk());
    for (const TensorDef& tensor : tensors) {
      int64_t elements = 1;
      for (const int64_t dim : tensor.shape()) elements *= dim;
      for (int64_t offset = 0; offset < elements;) {
        const int64_t count =
            std::min<int64_t>(kMaxPartBytes / 4, elements - offset);
        ASSERT_THAT(shard_.Load(MakeLoad(
                        chief_, {MakeSlice(tensor.name(), offset, count)},
                        BytesOf(std::vector<float>(count)), "", epoch)),
                    IsOk());
        offset += count;
      }
    }
    ASSERT_THAT(shard_.Seal(MakeSeal(chief_, epoch)), IsOk());
  }

  std::vector<float> Pull(const TensorSlice& slice) {
    const auto reply = shard_.Pull(MakePull(worker_, {slice}));
    EXPECT_THAT(reply, IsOk());
    return reply.ok() ? ValuesOf<float>(reply->data) : std::vector<float>();
  }

  const Sender chief_ = MakeSender(0, 11);
  const Sender worker_ = MakeSender(1, 22);
  // Whether the models to be made ready are pulled in place.
  bool in_place_ = false;
  ParameterShard shard_;
};

TEST_F(ParameterShardTest, APushIsAnsweredByTheNewValues) {
  const int64_t elements = kBlockElements + 2;
  MakeReady({MakeTensor("w", {elements}), MakeTensor("b", {2})});
  const auto push = [&](int32_t part, std::vector<TensorSlice> slices,
                        std::vector<float> gradient) {
    Frame<PushPart> request = MakePush(worker_, 1, std::move(slices),
                                       BytesOf(gradient), part, /*parts=*/2);
    request.header.set_wants_values(true);
    return Copied(shard_.Push(request));
  };
  // The last part first, as a backward pass pushes: the step counts from it on.
  const auto last = push(1, {MakeSlice("b", 0, 2)}, {-1, -2});
  ASSERT_THAT(last, IsOk());
  EXPECT_EQ(last->header.version(), 1);
  EXPECT_THAT(ValuesOf<float>(last->data), ElementsAre(1, 2));
  std::vector<float> gradient(elements, -1);
  gradient.back() = -3;
  const auto first = push(0, {MakeSlice("w", 0, elements)}, gradient);
  ASSERT_THAT(first, IsOk());
  EXPECT_EQ(first->header.version(), 1);
  const std::vector<float> values = ValuesOf<float>(first->data);
  ASSERT_EQ(values.size(), elements);
  EXPECT_EQ(values.front(), 1);
  EXPECT_EQ(values.back(), 3);
  const auto again = push(1, {MakeSlice("b", 0, 2)}, {-1, -2});
  ASSERT_THAT(again, IsOk());
  EXPECT_TRUE(again->header.duplicate());
  EXPECT_THAT(ValuesOf<float>(again->data), ElementsAre(1, 2));
}

// Over several tiles of a block, its end and a second tensor.
TEST_F(ParameterShardTest, NewValuesTakeThePlaceOfTheGradient) {
  const int64_t elements = kBlockElements + 20001;
  MakeReady({MakeTensor("w", {elements}), MakeTensor("b", {3})});
  std::vector<float> gradient(elements + 3);
  for (size_t i = 0; i < gradient.size(); ++i) {
    gradient[i] = -static_cast<float>(i % 1000);
  }
  std::vector<float> wanted;
  for (const float value : gradient) wanted.push_back(-value);
  char* const place = reinterpret_cast<char*>(gradient.data());
  Frame<PushPart> request =
      MakePush(worker_, 1, {MakeSlice("w", 0, elements), MakeSlice("b", 0, 3)},
               absl::MakeCordFromExternal(
                   {place, gradient.size() * sizeof(float)}, [] {}));
  request.header.set_wants_values(true);
  const PushContext context = {
      [place](size_t size_bytes, absl::FunctionRef<void(char*)> fill) {
        fill(place);
        return absl::MakeCordFromExternal({place, size_bytes}, [] {});
      }};
  const auto reply = shard_.Push(request, context);
  ASSERT_THAT(reply, IsOk());
  EXPECT_EQ(gradient, wanted);
  ASSERT_EQ(reply->data.size(), gradient.size() * sizeof(float));
  EXPECT_EQ((*reply->data.chunk_begin()).data(), place);
  // So do those of a duplicate.
  gradient.assign(gradient.size(), 7);
  const auto again = shard_.Push(request, context);
  ASSERT_THAT(again, IsOk());
  EXPECT_TRUE(again->header.duplicate());
  EXPECT_EQ(ValuesOf<float>(again->data), wanted);
  EXPECT_EQ(gradient, wanted);
}

TEST_F(ParameterShardTest, APushThatWantsNoValuesGetsNone) {
  MakeReady({MakeTensor("w", {1})});
  const auto reply = shard_.Push(
      MakePush(worker_, 1, {MakeSlice("w", 0, 1)}, BytesOf<float>({-1})));
  ASSERT_THAT(reply, IsOk());
  EXPECT_TRUE(reply->data.empty());
  EXPECT_EQ(reply->header.version(), 1);
}

TEST_F(ParameterShardTest, AVersionCanBeAskedForAlone) {
  MakeReady({MakeTensor("b", {2})});
  const auto push = shard_.Push(MakePush(worker_, 1, {MakeSlice("b", 0, 2)},
                                         BytesOf(std::vector<float>{-1, -2})));
  ASSERT_THAT(push, IsOk());
  EXPECT_EQ(push->header.version(), 1);
  const auto pull = shard_.Pull(MakePull(worker_, {}));
  ASSERT_THAT(pull, IsOk());
  EXPECT_EQ(pull->header.version(), 1);
  EXPECT_TRUE(pull->data.empty());
}

TEST_F(ParameterShardTest, ParametersInPlaceAreWhereTheyAreUpdated) {
  const std::vector<TensorDef> tensors = {MakeTensor("b", {2}),
                                          MakeTensor("w", {3})};
  EXPECT_THAT(
      shard_.ParametersInPlace(1),
      StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("fenced: ")));
  MakeReady(tensors);
  EXPECT_THAT(shard_.ParametersInPlace(1),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("without replication.sync or "
                                 "replication.async.pull: IN_PLACE")));
  in_place_ = true;
  MakeReady(tensors, /*epoch=*/2);
  EXPECT_THAT(
      shard_.ParametersInPlace(1),
      StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("fenced: ")));
  const auto memory = shard_.ParametersInPlace(2);
  ASSERT_THAT(memory, IsOk());
  EXPECT_EQ((*memory)->size_bytes(), 128);
  // "w" begins at the next line of a cache.
  const float* const w = reinterpret_cast<const float*>((*memory)->data() + 64);
  EXPECT_EQ(w[2], 0);
  Frame<PushPart> push = MakePush(worker_, 1, {MakeSlice("w", 0, 3)},
                                  BytesOf(std::vector<float>{-1, -2, -3}));
  *push.header.mutable_fence() = MakeFence(2);
  ASSERT_THAT(shard_.Push(push), IsOk());
  EXPECT_EQ(w[2], 3);
  // The model goes, who reads it does not crash.
  MakeReady(tensors, /*epoch=*/3);
  EXPECT_EQ(w[2], 3);
}

TEST_F(ParameterShardTest, AModelEpochDoesNotJump) {
  const std::vector<TensorDef> tensors = {MakeTensor("w", {3})};
  MakeReady(tensors, /*epoch=*/7);
  EXPECT_THAT(shard_.Define(MakeDefine(chief_, tensors, 999'999'999'999'990)),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("no count of restores: the shard is at 7")));
  EXPECT_EQ(shard_.State().phase(), READY);
  MakeReady(tensors, /*epoch=*/8);
}

TEST_F(ParameterShardTest, GoesFromEmptyOverLoadingToReady) {
  EXPECT_EQ(shard_.State().phase(), EMPTY);
  ASSERT_THAT(shard_.Define(MakeDefine(chief_, {MakeTensor("w", {3})})),
              IsOk());
  EXPECT_EQ(shard_.State().phase(), LOADING);
  ASSERT_THAT(shard_.Load(MakeLoad(chief_, {MakeSlice("w", 0, 3)},
                                   BytesOf<float>({1, 2, 3}))),
              IsOk());
  ASSERT_THAT(shard_.Seal(MakeSeal(chief_)), IsOk());
  EXPECT_EQ(shard_.State().phase(), READY);
  EXPECT_EQ(shard_.State().bytes(), 12);
  EXPECT_THAT(Pull(MakeSlice("w", 1, 2)), ElementsAre(2, 3));
}

#if !defined(ABSL_HAVE_ADDRESS_SANITIZER) && \
    !defined(ABSL_HAVE_THREAD_SANITIZER)
// Sanitizers' malloc ends the process.
TEST_F(ParameterShardTest, AModelThatTheMachineHasNoMemoryForEndsNothing) {
  ShardOptions options = TestOptions();
  options.max_bytes = std::numeric_limits<int64_t>::max();
  ParameterShard shard(options);
  ASSERT_THAT(shard.Hello(MakeHello(chief_)), IsOk());
  ASSERT_THAT(shard.Define(MakeDefine(chief_, {MakeTensor("w", {3})})), IsOk());
  // 256 TiB: more than a process can address.
  EXPECT_THAT(shard.Define(MakeDefine(
                  chief_, {MakeTensor("w", {int64_t{1} << 46})}, /*epoch=*/2)),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       AllOf(StartsWith("define from "),
                             HasSubstr("281474976710656 bytes"),
                             HasSubstr("use more ps tasks"))));
  EXPECT_EQ(shard.State().phase(), EMPTY);
  EXPECT_EQ(shard.State().bytes(), 0);
  EXPECT_THAT(
      shard.Load(
          MakeLoad(chief_, {MakeSlice("w", 0, 3)}, BytesOf<float>({1, 2, 3}))),
      StatusIs(absl::StatusCode::kFailedPrecondition, StartsWith("fenced: ")));
  EXPECT_THAT(shard.Define(MakeDefine(chief_, {MakeTensor("w", {3})}, 2)),
              IsOk());
}
#endif

TEST_F(ParameterShardTest, SealNamesTheFirstTensorThatIsNotWhole) {
  ASSERT_THAT(shard_.Define(MakeDefine(
                  chief_, {MakeTensor("a", {2}), MakeTensor("b", {4})})),
              IsOk());
  ASSERT_THAT(
      shard_.Load(MakeLoad(chief_, {MakeSlice("a", 0, 2), MakeSlice("b", 0, 1)},
                           BytesOf<float>({1, 2, 3}))),
      IsOk());
  EXPECT_THAT(shard_.Seal(MakeSeal(chief_)),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("'b' is not loaded from element 1 of 4")));
}

TEST_F(ParameterShardTest, AnEmptyShardIsLegal) {
  MakeReady({});
  EXPECT_THAT(shard_.Pull(MakePull(worker_, {})), IsOk());
  EXPECT_THAT(shard_.Push(MakePush(worker_, 1, {}, absl::Cord())), IsOk());
  EXPECT_EQ(shard_.State().version(), 1);
}

TEST_F(ParameterShardTest, AppliesTheRuleToTrainableAndAddsToState) {
  MakeReady({MakeTensor("w", {2}), MakeTensor("mean", {2}, STATE)});
  ASSERT_THAT(shard_.Push(MakePush(
                  worker_, 1, {MakeSlice("w", 0, 2), MakeSlice("mean", 0, 2)},
                  BytesOf<float>({1, -2, 3, 4}))),
              IsOk());
  EXPECT_THAT(Pull(MakeSlice("w", 0, 2)), ElementsAre(-1, 2));
  EXPECT_THAT(Pull(MakeSlice("mean", 0, 2)), ElementsAre(3, 4));
}

TEST_F(ParameterShardTest, AStateTensorDecaysBeforeItIsAddedTo) {
  TensorDef mean = MakeTensor("mean", {3}, STATE);
  mean.set_decay(0.25F);
  MakeReady({MakeTensor("w", {2}), mean});
  for (const int64_t step : {1, 2}) {
    ASSERT_THAT(
        shard_.Push(MakePush(worker_, step,
                             {MakeSlice("w", 0, 2), MakeSlice("mean", 0, 3)},
                             BytesOf<float>({1, -2, 8, 16, -32}))),
        IsOk());
  }
  EXPECT_THAT(Pull(MakeSlice("w", 0, 2)), ElementsAre(-2, 4));
  EXPECT_THAT(Pull(MakeSlice("mean", 0, 3)), ElementsAre(14, 28, -56));
  // Plain sums would overflow.
  const float most = std::numeric_limits<float>::max();
  for (int64_t step = 3; step < 10; ++step) {
    EXPECT_THAT(shard_.Push(MakePush(worker_, step, {MakeSlice("mean", 0, 3)},
                                     BytesOf<float>({0, most / 4, -most / 4}))),
                IsOk());
  }
}

TEST_F(ParameterShardTest, AFrozenTensorHasNoSlotsAndTakesNoPush) {
  DefineRequest define = MakeDefine(
      chief_, {MakeTensor("w", {2}), MakeTensor("kept", {2}, FROZEN)});
  define.mutable_optimizer()->set_name("momentum");
  ASSERT_THAT(shard_.Define(define), IsOk());
  EXPECT_EQ(shard_.State().slot_bytes(), 2 * sizeof(float));
  EXPECT_THAT(shard_.Load(MakeLoad(chief_, {MakeSlice("kept", 0, 2)},
                                   BytesOf<float>({1, 2}), "momentum")),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("'kept' is frozen and has no slots")));
  ASSERT_THAT(shard_.Load(MakeLoad(
                  chief_, {MakeSlice("w", 0, 2), MakeSlice("kept", 0, 2)},
                  BytesOf<float>({0, 0, 3, 4}))),
              IsOk());
  ASSERT_THAT(shard_.Seal(MakeSeal(chief_)), IsOk());
  EXPECT_THAT(shard_.Push(MakePush(
                  worker_, 1, {MakeSlice("w", 0, 2), MakeSlice("kept", 0, 2)},
                  BytesOf<float>({1, 1, 1, 1}))),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("'kept' is frozen")));
  ASSERT_THAT(shard_.Push(MakePush(worker_, 1, {MakeSlice("w", 0, 2)},
                                   BytesOf<float>({1, 1}))),
              IsOk());
  EXPECT_THAT(Pull(MakeSlice("w", 0, 2)), ElementsAre(-1, -1));
  EXPECT_THAT(Pull(MakeSlice("kept", 0, 2)), ElementsAre(3, 4));
}

TEST_F(ParameterShardTest, RefusesADecayOutOfRangeOrOfATrainableTensor) {
  const auto define = [this](TensorKind kind, float decay) {
    TensorDef def = MakeTensor("mean", {1}, kind);
    def.set_decay(decay);
    return shard_.Define(MakeDefine(chief_, {def})).status();
  };
  const auto is_refused = StatusIs(absl::StatusCode::kInvalidArgument,
                                   HasSubstr("define 'mean': decay"));
  for (const float decay :
       {-0.1F, 1.5F, std::nanf(""), std::numeric_limits<float>::infinity()}) {
    EXPECT_THAT(define(STATE, decay), is_refused) << decay;
  }
  EXPECT_THAT(define(TRAINABLE, 0.5F), is_refused);
  EXPECT_THAT(define(STATE, 1), IsOk());
}

TEST_F(ParameterShardTest, TakesAnExtentThatIsTheWholeTensor) {
  TensorDef whole = MakeTensor("w", {2, 3});
  whole.mutable_extent()->set_length(6);
  EXPECT_THAT(shard_.Define(MakeDefine(chief_, {whole})), IsOk());
}

TEST_F(ParameterShardTest, EveryRequestOfAnotherNamespaceIsUnimplemented) {
  MakeReady({MakeTensor("w", {1})});
  Sender other = worker_;
  other.set_namespace_("b");
  const auto is_refused =
      StatusIs(absl::StatusCode::kUnimplemented,
               HasSubstr("namespace 'b'; only the default namespace ''"));
  const TensorSlice slice = MakeSlice("w", 0, 1);
  const absl::Cord data = BytesOf<float>({1});
  EXPECT_THAT(shard_.Hello(MakeHello(other)), is_refused);
  EXPECT_THAT(shard_.Define(MakeDefine(other, {}, 2)), is_refused);
  EXPECT_THAT(shard_.Load(MakeLoad(other, {slice}, data)), is_refused);
  EXPECT_THAT(shard_.Seal(MakeSeal(other)), is_refused);
  EXPECT_THAT(shard_.Pull(MakePull(other, {slice})), is_refused);
  const Frame<PushPart> push = MakePush(other, 1, {slice}, data);
  EXPECT_THAT(shard_.Push(push), is_refused);
  EXPECT_THAT(shard_.UpdateOnDevice(push.header), is_refused);
  EXPECT_THAT(shard_.KeepOnDevice(other, MakeFence(), nullptr), is_refused);
  BeginSnapshotRequest begin;
  *begin.mutable_sender() = other;
  EXPECT_THAT(shard_.BeginSnapshot(begin), is_refused);
  EXPECT_THAT(shard_.ReadSnapshot(MakeRead(other, 1, slice)), is_refused);
  EndSnapshotRequest end;
  *end.mutable_sender() = other;
  EXPECT_THAT(shard_.EndSnapshot(end), is_refused);
  StateRequest state;
  EXPECT_THAT(shard_.StateOf(state), IsOk());
  state.set_namespace_("b");
  EXPECT_THAT(shard_.StateOf(state), is_refused);
}

// Both parts of a step have the step's staleness, though the first one raises
// the shard's version.
TEST_F(ParameterShardTest, DividesTheLearningRateByAStepsStaleness) {
  DefineRequest define =
      MakeDefine(chief_, {MakeTensor("a", {1}), MakeTensor("b", {1})});
  define.mutable_replication()
      ->mutable_async()
      ->set_staleness_scaled_learning_rate(true);
  ASSERT_THAT(shard_.Define(define), IsOk());
  const std::vector<TensorSlice> both = {MakeSlice("a", 0, 1),
                                         MakeSlice("b", 0, 1)};
  ASSERT_THAT(shard_.Load(MakeLoad(chief_, both, BytesOf<float>({0, 0}))),
              IsOk());
  ASSERT_THAT(shard_.Seal(MakeSeal(chief_)), IsOk());
  const auto after_step = [&](int64_t step) {
    for (const int32_t part : {0, 1}) {
      EXPECT_THAT(shard_.Push(MakePush(worker_, step, {both[part]},
                                       BytesOf<float>({-4}), part, 2)),
                  IsOk());
    }
    return std::vector<float>{Pull(both[0])[0], Pull(both[1])[0]};
  };
  EXPECT_THAT(after_step(1), ElementsAre(4, 4));    // staleness 0
  EXPECT_THAT(after_step(2), ElementsAre(8, 8));    // staleness 1
  EXPECT_THAT(after_step(3), ElementsAre(10, 10));  // staleness 2
}

TEST_F(ParameterShardTest, TakesALargeTensorInParts) {
  const int64_t elements = kMaxPartBytes / 4 + kBlockElements + 5;
  MakeReady({MakeTensor("w", {elements})});
  const int64_t first = kMaxPartBytes / 4;
  ASSERT_THAT(
      shard_.Push(MakePush(worker_, 1, {MakeSlice("w", 0, first)},
                           BytesOf(std::vector<float>(first, -1)), 0, 2)),
      IsOk());
  const int64_t rest = elements - first;
  ASSERT_THAT(
      shard_.Push(MakePush(worker_, 1, {MakeSlice("w", first, rest)},
                           BytesOf(std::vector<float>(rest, -1)), 1, 2)),
      IsOk());
  EXPECT_THAT(Pull(MakeSlice("w", 0, first)), Each(1.0f));
  EXPECT_THAT(Pull(MakeSlice("w", first, rest)), Each(1.0f));
}

TEST_F(ParameterShardTest, AppliesFromUnalignedChunks) {
  const int64_t elements = kBlockElements + 7;
  MakeReady({MakeTensor("w", {elements})});
  std::vector<float> gradient(elements);
  for (int64_t i = 0; i < elements; ++i) gradient[i] = static_cast<float>(-i);
  const std::string bytes(BytesOf(gradient));
  // Chunks as a transport might cut them: odd lengths, odd addresses.
  std::string shifted = "x" + bytes;
  absl::Cord data;
  const absl::string_view all = absl::string_view(shifted).substr(1);
  for (size_t at = 0; at < all.size(); at += 10007) {
    data.Append(absl::MakeCordFromExternal(all.substr(at, 10007), [] {}));
  }
  ASSERT_THAT(
      shard_.Push(MakePush(worker_, 1, {MakeSlice("w", 0, elements)}, data)),
      IsOk());
  const std::vector<float> w = Pull(MakeSlice("w", 0, elements));
  for (int64_t i = 0; i < elements; ++i) {
    ASSERT_EQ(w[i], static_cast<float>(i)) << "element " << i;
  }
}

TEST_F(ParameterShardTest, AnswersADuplicateWithTheFirstOutcome) {
  MakeReady({MakeTensor("w", {1})});
  const auto push = [this](const Sender& sender, int64_t step) {
    return shard_.Push(
        MakePush(sender, step, {MakeSlice("w", 0, 1)}, BytesOf<float>({-1})));
  };
  ASSERT_THAT(push(chief_, 1), IsOk());
  const auto first = push(worker_, 1);  // pulled version 0, the shard is at 1
  ASSERT_THAT(first, IsOk());
  EXPECT_FALSE(first->header.duplicate());
  EXPECT_EQ(first->header.staleness(), 1);
  ASSERT_THAT(push(worker_, 2), IsOk());

  const auto again = push(worker_, 1);
  ASSERT_THAT(again, IsOk());
  EXPECT_TRUE(again->header.duplicate());
  EXPECT_EQ(again->header.staleness(), 1);
  EXPECT_THAT(Pull(MakeSlice("w", 0, 1)), ElementsAre(3));
  EXPECT_EQ(shard_.counters().duplicate_parts, 1);
}

TEST_F(ParameterShardTest, VersionCountsStepsNotParts) {
  MakeReady({MakeTensor("a", {1}), MakeTensor("b", {1})});
  ASSERT_THAT(shard_.Push(MakePush(worker_, 1, {MakeSlice("b", 0, 1)},
                                   BytesOf<float>({1}), 1, 2)),
              IsOk());
  EXPECT_EQ(shard_.State().version(), 1);
  ASSERT_THAT(shard_.Push(MakePush(worker_, 1, {MakeSlice("a", 0, 1)},
                                   BytesOf<float>({1}), 0, 2)),
              IsOk());
  EXPECT_EQ(shard_.State().version(), 1);
  EXPECT_EQ(shard_.counters().staleness_count, 1);
}

TEST_F(ParameterShardTest, FencesAnotherPsEpochAndIncarnation) {
  MakeReady({MakeTensor("w", {1})});
  const auto push = [this](uint64_t ps, int64_t epoch, const Sender& sender) {
    Frame<PushPart> request =
        MakePush(sender, 1, {MakeSlice("w", 0, 1)}, BytesOf<float>({-1}));
    request.header.mutable_fence()->set_ps_incarnation(ps);
    request.header.mutable_fence()->set_model_epoch(epoch);
    return shard_.Push(request);
  };
  const auto is_fenced =
      StatusIs(absl::StatusCode::kFailedPrecondition, StartsWith("fenced: "));
  EXPECT_THAT(push(kPsIncarnation + 1, 1, worker_), is_fenced);
  EXPECT_THAT(push(kPsIncarnation, 2, worker_), is_fenced);
  EXPECT_THAT(push(kPsIncarnation, 1, MakeSender(1, 23)), is_fenced);
  // A restarted worker retires its former self, for good.
  const auto asked = shard_.Hello(MakeHello(MakeSender(1, 23)));
  ASSERT_THAT(asked, IsOk());
  EXPECT_NE(asked->takeover(), 0);
  EXPECT_THAT(push(kPsIncarnation, 1, MakeSender(1, 23)), is_fenced);
  const auto taken =
      shard_.Hello(MakeHello(MakeSender(1, 23), asked->takeover()));
  ASSERT_THAT(taken, IsOk());
  EXPECT_EQ(taken->takeover(), 0);
  EXPECT_THAT(push(kPsIncarnation, 1, worker_), is_fenced);
  EXPECT_THAT(shard_.Hello(MakeHello(worker_)), is_fenced);
  EXPECT_THAT(push(kPsIncarnation, 1, MakeSender(1, 23)), IsOk());
  EXPECT_EQ(shard_.counters().fenced_parts, 5);
}

TEST_F(ParameterShardTest, ANewEpochFencesTheOldAndForgetsItsSteps) {
  MakeReady({MakeTensor("w", {1})});
  Frame<PushPart> push =
      MakePush(worker_, 1, {MakeSlice("w", 0, 1)}, BytesOf<float>({-1}));
  ASSERT_THAT(shard_.Push(push), IsOk());
  EXPECT_THAT(
      shard_.Define(MakeDefine(chief_, {}, 1)),
      StatusIs(absl::StatusCode::kFailedPrecondition, StartsWith("fenced: ")));
  MakeReady({MakeTensor("w", {1})}, /*epoch=*/2);
  EXPECT_THAT(shard_.Push(push), StatusIs(absl::StatusCode::kFailedPrecondition,
                                          HasSubstr("model epoch 1")));
  push.header.mutable_fence()->set_model_epoch(2);
  const auto reply = shard_.Push(push);
  ASSERT_THAT(reply, IsOk());
  EXPECT_FALSE(reply->header.duplicate());
}

TEST_F(ParameterShardTest, ALateRepeatOfALoadDoesNotUndoTraining) {
  MakeReady({MakeTensor("w", {1})});
  ASSERT_THAT(shard_.Push(MakePush(worker_, 1, {MakeSlice("w", 0, 1)},
                                   BytesOf<float>({-1}))),
              IsOk());
  EXPECT_THAT(shard_.Load(MakeLoad(chief_, {MakeSlice("w", 0, 1)},
                                   BytesOf<float>({0}))),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("")));
  EXPECT_THAT(Pull(MakeSlice("w", 0, 1)), ElementsAre(1));
}

TEST_F(ParameterShardTest, RefusesNonFiniteGradientsByName) {
  MakeReady({MakeTensor("a", {100}), MakeTensor("b", {200})});
  for (const float bad : {std::nanf(""), std::numeric_limits<float>::infinity(),
                          -std::numeric_limits<float>::infinity()}) {
    std::vector<float> values(300, -1.0f);
    values[100 + 130] = bad;
    EXPECT_THAT(
        shard_.Push(MakePush(worker_, 1,
                             {MakeSlice("a", 0, 100), MakeSlice("b", 0, 200)},
                             BytesOf(values))),
        StatusIs(absl::StatusCode::kInvalidArgument,
                 HasSubstr("'b' has NaN or infinity at element 130")));
  }
  EXPECT_THAT(Pull(MakeSlice("a", 0, 100)), Each(0.0f));
}

TEST_F(ParameterShardTest, TakesTheWordOfWhoSharesTheMemoryOfThePush) {
  MakeReady({MakeTensor("w", {2})});
  PushContext context;
  context.is_finite = true;
  const auto nan = BytesOf<float>({std::nanf(""), -1});
  const auto push = [&](int64_t step, const absl::Cord& data,
                        const std::string& codec) {
    Frame<PushPart> part =
        MakePush(worker_, step, {MakeSlice("w", 0, 2)}, data);
    part.header.set_codec(codec);
    return shard_.Push(part, context);
  };
  // Said of float32; encoded values were not seen as what they are.
  EXPECT_THAT(push(1, absl::Cord("\xc0\x7f\x80\x3f"), "bf16"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("NaN or infinity at element 0")));
  EXPECT_THAT(push(1, nan, ""), IsOk());
  EXPECT_TRUE(std::isnan(Pull(MakeSlice("w", 0, 2))[0]));
}

TEST_F(ParameterShardTest, RefusesAStateTensorThatWouldBecomeInfinite) {
  MakeReady({MakeTensor("w", {3}), MakeTensor("mean", {2}, STATE)});
  const auto push = [&](int64_t step, float delta) {
    return shard_.Push(MakePush(worker_, step,
                                {MakeSlice("w", 0, 3), MakeSlice("mean", 0, 2)},
                                BytesOf<float>({-1, -1, -1, 0, delta})));
  };
  ASSERT_THAT(push(1, 3e38f), IsOk());
  EXPECT_THAT(push(2, 1e38f),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("'mean' would become infinite at element 1")));
  EXPECT_THAT(Pull(MakeSlice("w", 0, 3)), Each(1.0f));
  EXPECT_THAT(Pull(MakeSlice("mean", 0, 2)), ElementsAre(0, 3e38f));
  EXPECT_THAT(push(3, -1e38f), IsOk());
}

TEST_F(ParameterShardTest, TakesNonFiniteValuesIfTheChiefAllowsThem) {
  DefineRequest define =
      MakeDefine(chief_, {MakeTensor("w", {1}), MakeTensor("m", {1}, STATE)});
  define.set_allow_non_finite(true);
  ASSERT_THAT(shard_.Define(define), IsOk());
  const float inf = std::numeric_limits<float>::infinity();
  const std::vector<TensorSlice> both = {MakeSlice("w", 0, 1),
                                         MakeSlice("m", 0, 1)};
  ASSERT_THAT(shard_.Load(MakeLoad(chief_, both, BytesOf<float>({inf, 3e38f}))),
              IsOk());
  ASSERT_THAT(shard_.Seal(MakeSeal(chief_)), IsOk());
  ASSERT_THAT(
      shard_.Push(MakePush(worker_, 1, both, BytesOf<float>({inf, 3e38f}))),
      IsOk());
  EXPECT_TRUE(std::isnan(Pull(both[0])[0]));
  EXPECT_TRUE(std::isinf(Pull(both[1])[0]));
}

TEST_F(ParameterShardTest, ASnapshotStaysWhileTrainingGoesOn) {
  const int64_t elements = kBlockElements + 3;
  MakeReady({MakeTensor("w", {elements})});
  const auto push = [&](int64_t step) {
    return shard_.Push(MakePush(worker_, step, {MakeSlice("w", 0, elements)},
                                BytesOf(std::vector<float>(elements, -1))));
  };
  ASSERT_THAT(push(1), IsOk());
  BeginSnapshotRequest begin;
  *begin.mutable_sender() = chief_;
  *begin.mutable_fence() = MakeFence();
  const auto snapshot = shard_.BeginSnapshot(begin);
  ASSERT_THAT(snapshot, IsOk());
  ASSERT_EQ(snapshot->marks_size(), 1);
  EXPECT_EQ(snapshot->marks(0).step(), 1);
  EXPECT_THAT(snapshot->marks(0).parts(), ElementsAre(0));
  ASSERT_THAT(push(2), IsOk());

  const auto read = [&](uint64_t id, const std::string& slot, int64_t count) {
    return shard_.ReadSnapshot(
        MakeRead(chief_, id, MakeSlice("w", 0, count), slot));
  };
  const auto values = read(snapshot->snapshot(), "", elements);
  ASSERT_THAT(values, IsOk());
  EXPECT_THAT(ValuesOf<float>(values->data), Each(1.0f));
  const auto counts = read(snapshot->snapshot(), "t", 2);
  ASSERT_THAT(counts, IsOk());
  EXPECT_THAT(ValuesOf<int64_t>(counts->data), ElementsAre(1, 1));
  EXPECT_THAT(Pull(MakeSlice("w", 0, 1)), ElementsAre(2));

  // A second Begin ends the first.
  ASSERT_THAT(shard_.BeginSnapshot(begin), IsOk());
  EXPECT_THAT(read(snapshot->snapshot(), "", 1),
              StatusIs(absl::StatusCode::kAborted, HasSubstr("has ended")));
}

TEST_F(ParameterShardTest, TakesTokensOnlyWhereThereAreRounds) {
  MakeReady({MakeTensor("w", {2})});
  PullRequest pull = MakePull(chief_, {MakeSlice("w", 0, 2)});
  pull.mutable_token()->set_round(1);
  EXPECT_THAT(shard_.Pull(pull), StatusIs(absl::StatusCode::kInvalidArgument,
                                          HasSubstr("round 1")));
}

TEST_F(ParameterShardTest, RestoresUpdateCountsAndKeepsCounting) {
  ASSERT_THAT(shard_.Define(MakeDefine(chief_, {MakeTensor("w", {2})})),
              IsOk());
  ASSERT_THAT(shard_.Load(MakeLoad(chief_, {MakeSlice("w", 0, 2)},
                                   BytesOf<float>({5, 6}))),
              IsOk());
  ASSERT_THAT(shard_.Load(MakeLoad(chief_, {MakeSlice("w", 0, 1)},
                                   BytesOf<int64_t>({41}), "t")),
              IsOk());
  ASSERT_THAT(shard_.Seal(MakeSeal(chief_)), IsOk());
  ASSERT_THAT(shard_.Push(MakePush(worker_, 1, {MakeSlice("w", 0, 2)},
                                   BytesOf<float>({1, 1}))),
              IsOk());
  BeginSnapshotRequest begin;
  *begin.mutable_sender() = chief_;
  *begin.mutable_fence() = MakeFence();
  const auto snapshot = shard_.BeginSnapshot(begin);
  ASSERT_THAT(snapshot, IsOk());
  const auto counts = shard_.ReadSnapshot(
      MakeRead(chief_, snapshot->snapshot(), MakeSlice("w", 0, 1), "t"));
  ASSERT_THAT(counts, IsOk());
  EXPECT_THAT(ValuesOf<int64_t>(counts->data), ElementsAre(42));
}

}  // namespace
}  // namespace muster
