#include "ps_server/shard/device_resident_parameters.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/optimizer/update_rule.h"
#include "common/rpc/device_parameters.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ps_server/shard/parameter_shard.h"
#include "tests/ps_server/shard/shard_requests.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

// Two blocks, the last one of an odd size, and a tensor of one.
constexpr int64_t kLong = kBlockElements + 3;
constexpr int64_t kShort = 5;
constexpr int64_t kAll = kLong + kShort;

std::vector<TensorSlice> AllSlices() {
  return {MakeSlice("w", 0, kLong), MakeSlice("b", 0, kShort)};
}

std::vector<float> Gradient(int64_t step) {
  std::vector<float> gradient(kAll);
  for (int64_t i = 0; i < kAll; ++i) {
    gradient[i] = static_cast<float>((step * 7 + i * 13) % 11 - 5) / 8;
  }
  return gradient;
}

OptimizerSpec Adam() {
  OptimizerSpec spec;
  spec.set_name("adam");
  return spec;
}

// Holds tensors, and its own gradient, in vectors: of all tensors, one after
// another.
class FakeHolder : public DeviceParameters {
 public:
  FakeHolder() : rule_(*CreateUpdateRule(Adam())) {}

  absl::Status Take(absl::Span<const ResidentTensor> tensors) override {
    RETURN_IF_ERROR(failure);
    ++takes;
    streams_.assign(1 + rule_->slots().size(), {});
    begins_.clear();
    for (const ResidentTensor& tensor : tensors) {
      begins_.push_back(streams_[0].size());
      Append(tensor.parameter, &streams_[0]);
      for (size_t slot = 0; slot < tensor.slots.size(); ++slot) {
        for (const absl::Span<float> run : tensor.slots[slot]) {
          Append(run, &streams_[1 + slot]);
        }
      }
    }
    return absl::OkStatus();
  }

  void Update(int tensor, int64_t begin, int64_t end,
              const BlockUpdate& update) override {
    const size_t at = begins_[tensor] + begin;
    float* const slots[] = {&streams_[1][at], &streams_[2][at]};
    rule_->Apply(update, &gradient[at], &streams_[0][at], slots, end - begin);
  }

  absl::Status WriteBack(absl::Span<const ResidentTensor> tensors) override {
    RETURN_IF_ERROR(failure);
    ++write_backs;
    for (size_t i = 0; i < tensors.size(); ++i) {
      Copy(0, begins_[i], {tensors[i].parameter});
      for (size_t slot = 0; slot < tensors[i].slots.size(); ++slot) {
        Copy(1 + slot, begins_[i], tensors[i].slots[slot]);
      }
    }
    return absl::OkStatus();
  }

  std::vector<float> gradient;
  absl::Status failure;
  int takes = 0;
  int write_backs = 0;

 private:
  static void Append(absl::Span<const float> run, std::vector<float>* to) {
    to->insert(to->end(), run.begin(), run.end());
  }
  void Copy(size_t stream, size_t begin,
            const std::vector<absl::Span<float>>& runs) const {
    for (const absl::Span<float> run : runs) {
      std::copy_n(streams_[stream].begin() + begin, run.size(), run.begin());
      begin += run.size();
    }
  }

  const std::unique_ptr<UpdateRule> rule_;
  std::vector<std::vector<float>> streams_;  // parameter, slots
  std::vector<size_t> begins_;               // of each tensor
};

// A shard with one worker, who is the chief, too.
class TestShard {
 public:
  explicit TestShard(TensorKind kind = TRAINABLE) {
    ShardOptions options;
    options.incarnation = kPsIncarnation;
    shard_ = std::make_unique<ParameterShard>(options);
    EXPECT_THAT(shard_->Hello(MakeHello(worker_)), IsOk());
    MakeReady(1, kind, 0.5f);
  }

  void MakeReady(int64_t epoch, TensorKind kind, float value) {
    DefineRequest define = MakeDefine(
        worker_, {MakeTensor("w", {kLong}), MakeTensor("b", {kShort}, kind)},
        epoch);
    *define.mutable_optimizer() = Adam();
    ASSERT_THAT(shard_->Define(define), IsOk());
    ASSERT_THAT(shard_->Load(MakeLoad(worker_, AllSlices(),
                                      BytesOf(std::vector<float>(kAll, value)),
                                      "", epoch)),
                IsOk());
    ASSERT_THAT(shard_->Seal(MakeSeal(worker_, epoch)), IsOk());
  }

  absl::Status Hold(DeviceParameters* holder, int64_t epoch = 1) {
    return shard_->KeepOnDevice(worker_, MakeFence(epoch), holder);
  }

  // In two parts, of one tensor each.
  absl::StatusOr<PushReply> Push(int64_t step,
                                 const std::vector<float>& gradient) {
    const std::vector<float> first(gradient.begin(), gradient.begin() + kLong);
    const std::vector<float> second(gradient.begin() + kLong, gradient.end());
    const auto one = PushPartOf(step, 0, first);
    RETURN_IF_ERROR(one.status());
    return PushPartOf(step, 1, second);
  }
  absl::StatusOr<PushReply> PushPartOf(int64_t step, int32_t part,
                                       const std::vector<float>& gradient) {
    Frame<PushPart> push = MakePush(worker_, step, {AllSlices()[part]},
                                    BytesOf(gradient), part, /*parts=*/2);
    push.header.set_pulled_version(PulledBefore(step));
    ASSIGN_OR_RETURN(Frame<PushReply> reply, shard_->Push(push));
    return reply.header;
  }

  // An update by whoever holds the parameters.
  absl::StatusOr<PushReply> Update(int64_t step) {
    return shard_->UpdateOnDevice(UpdateOf(step));
  }
  PushPart UpdateOf(int64_t step) const {
    PushPart update;
    *update.mutable_sender() = worker_;
    *update.mutable_fence() = MakeFence();
    update.set_step(step);
    update.set_parts(1);
    update.set_pulled_version(PulledBefore(step));
    return update;
  }

  absl::StatusOr<std::vector<float>> Pull(int64_t epoch = 1) {
    ASSIGN_OR_RETURN(const Frame<PullReply> reply,
                     shard_->Pull(MakePull(worker_, AllSlices(), epoch)));
    return ValuesOf<float>(reply.data);
  }

  absl::StatusOr<BeginSnapshotReply> BeginSnapshot() {
    BeginSnapshotRequest request;
    *request.mutable_sender() = worker_;
    *request.mutable_fence() = MakeFence();
    return shard_->BeginSnapshot(request);
  }

  // Parameters and slots of all tensors, and how often the blocks of w were
  // updated.
  std::string ReadSnapshot(uint64_t id) {
    std::string bytes;
    for (const char* const slot : {"", "m", "v"}) {
      for (const TensorSlice& slice : AllSlices()) {
        Append(MakeRead(worker_, id, slice, slot), &bytes);
      }
    }
    Append(MakeRead(worker_, id, MakeSlice("w", 0, 2), "t"), &bytes);
    return bytes;
  }

  ParameterShard* operator->() { return shard_.get(); }

 private:
  // Two updates ago, or one.
  static int64_t PulledBefore(int64_t step) {
    return std::max<int64_t>(0, step - 2);
  }

  void Append(const ReadSnapshotRequest& request, std::string* bytes) {
    const auto reply = shard_->ReadSnapshot(request);
    EXPECT_THAT(reply, IsOk());
    if (reply.ok()) *bytes += std::string(reply->data);
  }

  const Sender worker_ = MakeSender(0, 11);
  std::unique_ptr<ParameterShard> shard_;
};

class DeviceResidentParametersTest : public testing::Test {
 protected:
  // A step of both.
  void Step(int64_t step) {
    holder_.gradient = Gradient(step);
    const auto found = held_.Update(step);
    const auto wanted = plain_.Push(step, Gradient(step));
    ASSERT_THAT(found, IsOk());
    ASSERT_THAT(wanted, IsOk());
    EXPECT_EQ(found->SerializeAsString(), wanted->SerializeAsString());
  }
  void ExpectSamePull() {
    const auto found = held_.Pull();
    ASSERT_THAT(found, IsOk());
    EXPECT_TRUE(*found == *plain_.Pull());
  }
  void ExpectSameSnapshot(uint64_t found, uint64_t wanted) {
    EXPECT_TRUE(held_.ReadSnapshot(found) == plain_.ReadSnapshot(wanted));
  }

  // Outlives the shard.
  FakeHolder holder_;
  TestShard held_;
  TestShard plain_;
};

TEST_F(DeviceResidentParametersTest, PullsAndSnapshotsSeeWhatIsHeld) {
  ASSERT_THAT(held_.Hold(&holder_), IsOk());
  for (int64_t step = 1; step <= 3; ++step) Step(step);
  EXPECT_EQ(holder_.write_backs, 0);
  ExpectSamePull();
  EXPECT_EQ(holder_.write_backs, 1);
  // Nothing was updated since.
  ExpectSamePull();
  EXPECT_EQ(holder_.write_backs, 1);
  Step(4);
  const auto cut = held_.BeginSnapshot();
  const auto wanted = plain_.BeginSnapshot();
  ASSERT_THAT(cut, IsOk());
  EXPECT_EQ(cut->version(), wanted->version());
  ASSERT_EQ(cut->marks_size(), 1);
  EXPECT_EQ(cut->marks(0).step(), 4);
  ExpectSameSnapshot(cut->snapshot(), wanted->snapshot());
}

TEST_F(DeviceResidentParametersTest, AnOpenSnapshotKeepsWhatItBeganWith) {
  ASSERT_THAT(held_.Hold(&holder_), IsOk());
  Step(1);
  const auto cut = held_.BeginSnapshot();
  const auto wanted = plain_.BeginSnapshot();
  ASSERT_THAT(cut, IsOk());
  const std::string before = held_.ReadSnapshot(cut->snapshot());
  Step(2);
  ExpectSamePull();
  Step(3);
  EXPECT_TRUE(held_.ReadSnapshot(cut->snapshot()) == before);
  ExpectSameSnapshot(cut->snapshot(), wanted->snapshot());
}

TEST_F(DeviceResidentParametersTest, CountsAdvanceAsWithPushes) {
  ASSERT_THAT(held_.Hold(&holder_), IsOk());
  for (int64_t step = 1; step <= 3; ++step) Step(step);
  EXPECT_EQ(held_->State().version(), 3);
  EXPECT_EQ(held_->counters().steps, 3);
  EXPECT_EQ(held_->counters().staleness_sum, plain_->counters().staleness_sum);
  EXPECT_GT(held_->counters().staleness_sum, 0);
}

TEST_F(DeviceResidentParametersTest, ARepeatedUpdateIsNotMadeTwice) {
  ASSERT_THAT(held_.Hold(&holder_), IsOk());
  Step(1);
  Step(1);
  EXPECT_EQ(held_->counters().applied_parts, 1);
  EXPECT_EQ(held_->counters().duplicate_parts, 1);
  ExpectSamePull();
}

TEST_F(DeviceResidentParametersTest, HoldingAgainKeepsTheUpdates) {
  ASSERT_THAT(held_.Hold(&holder_), IsOk());
  Step(1);
  ASSERT_THAT(held_.Hold(&holder_), IsOk());
  EXPECT_EQ(holder_.write_backs, 1);
  EXPECT_EQ(holder_.takes, 2);
  Step(2);
  ExpectSamePull();
}

TEST_F(DeviceResidentParametersTest, ALoadEndsIt) {
  ASSERT_THAT(held_.Hold(&holder_), IsOk());
  Step(1);
  held_.MakeReady(/*epoch=*/2, TRAINABLE, 0.25f);
  const auto pulled = held_.Pull(/*epoch=*/2);
  ASSERT_THAT(pulled, IsOk());
  EXPECT_THAT(*pulled, testing::Each(0.25f));
  EXPECT_EQ(holder_.write_backs, 0);
  EXPECT_THAT(
      held_.Hold(&holder_, /*epoch=*/1),
      StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("fenced: ")));
  EXPECT_THAT(held_.Hold(&holder_, /*epoch=*/2), IsOk());
}

TEST_F(DeviceResidentParametersTest, NobodyReadsWhatCannotBeWrittenBack) {
  ASSERT_THAT(held_.Hold(&holder_), IsOk());
  Step(1);
  holder_.failure = absl::InternalError("the device is gone");
  EXPECT_THAT(held_.Pull(), StatusIs(absl::StatusCode::kInternal,
                                     HasSubstr("the device is gone")));
  EXPECT_THAT(held_.BeginSnapshot(), StatusIs(absl::StatusCode::kInternal,
                                              HasSubstr("the device is gone")));
  holder_.failure = absl::OkStatus();
  ExpectSamePull();
}

TEST_F(DeviceResidentParametersTest, AHolderThatCannotTakeThemHoldsNothing) {
  holder_.failure = absl::ResourceExhaustedError("no memory");
  EXPECT_THAT(
      held_.Hold(&holder_),
      StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("no memory")));
  EXPECT_THAT(held_.Update(1),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("nobody holds the parameters")));
  ASSERT_THAT(held_.Push(1, Gradient(1)), IsOk());
  ASSERT_THAT(plain_.Push(1, Gradient(1)), IsOk());
  ExpectSamePull();
}

TEST_F(DeviceResidentParametersTest, RefusesPushesAndUpdatesOfOthers) {
  ASSERT_THAT(held_.Hold(&holder_), IsOk());
  const auto refusal = StatusIs(absl::StatusCode::kFailedPrecondition,
                                HasSubstr("held by /job:worker/task:0"));
  EXPECT_THAT(held_.Push(1, Gradient(1)), refusal);
  const Sender other = MakeSender(1, 22);
  ASSERT_THAT(held_->Hello(MakeHello(other)), IsOk());
  PushPart update = held_.UpdateOf(1);
  *update.mutable_sender() = other;
  EXPECT_THAT(held_->UpdateOnDevice(update), refusal);
  EXPECT_EQ(held_->counters().fenced_parts, 2);
  EXPECT_EQ(held_->State().version(), 0);
}

TEST_F(DeviceResidentParametersTest, AnUpdateIsCheckedAsAPush) {
  ASSERT_THAT(held_.Hold(&holder_), IsOk());
  const auto update = [&](const auto& change) {
    PushPart request = held_.UpdateOf(1);
    change(&request);
    return held_->UpdateOnDevice(request).status();
  };
  EXPECT_THAT(
      update([](PushPart* of) { of->mutable_fence()->set_model_epoch(2); }),
      StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("fenced: ")));
  EXPECT_THAT(update([](PushPart* of) { of->set_step(0); }),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(update([](PushPart* of) { of->set_part(1); }),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(update([](PushPart* of) { of->set_pulled_version(1); }),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(update([](PushPart* of) { of->set_round(1); }),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_EQ(held_->State().version(), 0);
}

TEST(KeepOnDeviceTest, NamesAStateTensor) {
  FakeHolder holder;
  TestShard shard(STATE);
  EXPECT_THAT(shard.Hold(&holder),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("'b' is a state tensor")));
  EXPECT_EQ(holder.takes, 0);
}

}  // namespace
}  // namespace muster
