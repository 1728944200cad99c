#include "worker/client/chief_client.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/rpc/call_table.h"
#include "common/rpc/deadline.h"
#include "common/rpc/protocol.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/fake_parameter_link.h"
#include "tests/testing/status_matchers.h"
#include "tests/worker/client/two_shard_fixture.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

// Remembers how long a Define may take.
class DefineTimer : public FakeParameterLink {
 public:
  DefineTimer(FakeShard* shard, const Clock* clock, absl::Duration* time)
      : FakeParameterLink(shard), clock_(clock), time_(time) {}

  void CallBytes(const AnyMethod& method, std::string request,
                 absl::Time deadline,
                 ReplyCallback<std::string> done) override {
    if (method == kDefineCall) *time_ = deadline - clock_->Now();
    FakeParameterLink::CallBytes(method, std::move(request), deadline,
                                 std::move(done));
  }

 private:
  const Clock* const clock_;
  absl::Duration* const time_;
};

// A model of a small and a large tensor on shard 0 and 1, and one more.
class ChiefClientTest : public TwoShardFixture {
 protected:
  static constexpr int64_t kLarge = 9 * kBlockElements + 5;

  void Connect() { TwoShardFixture::Connect({}, {10, kLarge, 700}, {0, 1, 0}); }
};

TEST_F(ChiefClientTest, LoadsRangesInAnyOrder) {
  Connect();
  for (int64_t i = 0; i < kLarge; ++i) {
    gradients_[1][i] = static_cast<float>(i % 1000);
  }
  const TensorView all = ViewOf(absl::MakeConstSpan(gradients_[1]));
  ASSERT_THAT(client_->chief().Define({}), IsOk());
  ASSERT_THAT(
      client_->chief().Load("", {{1, 7, {all.data + 28, all.size_bytes - 28}},
                                 {1, 0, {all.data, 28}}}),
      IsOk());
  ASSERT_THAT(client_->chief().Seal(), IsOk());
  EXPECT_TRUE(shards_[1]->values("tensor1") ==
              std::string(all.data, all.size_bytes));
}

TEST_F(ChiefClientTest, RefusesRangesThatAreNotInTheTensor) {
  Connect();
  const std::vector<float> values(11);
  const TensorView view = ViewOf(absl::MakeConstSpan(values));
  EXPECT_THAT(client_->chief().Load("", {{0, 0, view}}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("'tensor0' slot '' has 10 elements; asked "
                                 "for 11 from 0")));
  EXPECT_THAT(client_->chief().Load("", {{3, 0, view}}),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(client_->chief().Load("", {{0, 0, {view.data, 3}}}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("not a whole number of elements")));
}

TEST_F(ChiefClientTest, GivesAShardTimeToMakeRoomForItsTensors) {
  constexpr int64_t kElements = int64_t{1} << 30;
  FakeShard shard(FakeShard::Faults{});
  absl::Duration time;
  std::vector<std::unique_ptr<ParameterLink>> links;
  links.push_back(std::make_unique<DefineTimer>(&shard, &clock_, &time));
  options_.ps_names = {"/job:ps/task:0"};
  ParameterClient client(options_, std::move(links));
  TensorDef tensor;
  tensor.set_name("large");
  tensor.set_dtype(FLOAT32);
  tensor.add_shape(kElements);
  ASSERT_THAT(client.SetModel({tensor}, {0}), IsOk());
  client.SetEpoch(1, {11});
  ASSERT_THAT(client.chief().Define({}), IsOk());
  // As for the 4 GiB themselves on their way; 10 s are too short.
  EXPECT_GT(time, 0.9 * TransferTimeout(kElements * 4));
}

TEST_F(ChiefClientTest, ACutOfARoundThatIsPastIsAborted) {
  Connect();
  ASSERT_THAT(client_->chief().LoadModel({}, Views(gradients_)), IsOk());
  StepToken token;
  token.set_round(3);
  ASSERT_THAT(client_->chief().BeginSnapshot(token), IsOk());
  shards_[1]->AdvanceToRound(4);
  EXPECT_THAT(client_->chief().BeginSnapshot(token),
              StatusIs(absl::StatusCode::kAborted));
}

TEST_F(ChiefClientTest, ReadsASnapshotInRanges) {
  Connect();
  for (int64_t i = 0; i < kLarge; ++i) {
    gradients_[1][i] = static_cast<float>(i % 1000);
  }
  ASSERT_THAT(client_->chief().LoadModel({}, Views(gradients_)), IsOk());
  const auto snapshots = client_->chief().BeginSnapshot();
  ASSERT_THAT(snapshots, IsOk());
  std::vector<float> read(kLarge - 7);
  ASSERT_THAT(
      client_->chief().ReadSnapshot(*snapshots, 1, "", 7, kLarge - 7,
                                    reinterpret_cast<char*>(read.data())),
      IsOk());
  EXPECT_EQ(read,
            std::vector<float>(gradients_[1].begin() + 7, gradients_[1].end()));
  EXPECT_THAT(client_->chief().EndSnapshot(*snapshots), IsOk());
  EXPECT_THAT(
      client_->chief().ReadSnapshot(*snapshots, 1, "", 8, kLarge, nullptr),
      StatusIs(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace muster
