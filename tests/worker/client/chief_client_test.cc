#include "worker/client/chief_client.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/cluster/placement.h"
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

// Remembers how long a Define may take; the shard is told of no tensor, so that
// the test takes no memory for them.
class DefineTimer : public FakeParameterLink {
 public:
  DefineTimer(FakeShard* shard, const Clock* clock, absl::Duration* time)
      : FakeParameterLink(shard), clock_(clock), time_(time) {}

  void CallBytes(const AnyMethod& method, std::string request,
                 absl::Time deadline,
                 ReplyCallback<std::string> done) override {
    if (method == kDefineCall) {
      *time_ = deadline - clock_->Now();
      request = DefineRequest().SerializeAsString();
    }
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
  ASSERT_THAT(client.SetModel({tensor}, {{{0, 0, kElements}}}), IsOk());
  client.SetEpoch(1, {11});
  ASSERT_THAT(client.chief().Define({}), IsOk());
  // As for the 4 GiB themselves on their way; 10 s are too short.
  EXPECT_GT(time, 0.9 * TransferTimeout(kElements * 4));
}

// Remembers what it was told to hold, and to load.
class RecordingLink : public FakeParameterLink {
 public:
  struct Record {
    std::vector<TensorDef> defined;
    // The offset and the length of each slice.
    std::vector<std::pair<int64_t, int64_t>> loaded;
  };

  RecordingLink(FakeShard* shard, Record* record)
      : FakeParameterLink(shard), record_(*record) {}

  void CallBytes(const AnyMethod& method, std::string request,
                 absl::Time deadline,
                 ReplyCallback<std::string> done) override {
    DefineRequest define;
    if (method == kDefineCall && define.ParseFromString(request)) {
      record_.defined.assign(define.tensors().begin(), define.tensors().end());
    }
    FakeParameterLink::CallBytes(method, std::move(request), deadline,
                                 std::move(done));
  }
  void Load(Frame<LoadPart> request, absl::Time deadline,
            ReplyCallback<LoadReply> done) override {
    for (const TensorSlice& slice : request.header.slices()) {
      record_.loaded.emplace_back(slice.offset(), slice.length());
    }
    // It has values alone.
    if (!request.header.slot().empty()) return done(LoadReply());
    FakeParameterLink::Load(std::move(request), deadline, std::move(done));
  }

 private:
  Record& record_;
};

// The large tensor is cut after four of its ten blocks.
class CutTensorTest : public ChiefClientTest {
 protected:
  static constexpr int64_t kCut = 4 * kBlockElements;

  void SetUp() override {
    Connect();
    std::vector<std::unique_ptr<ParameterLink>> links;
    for (int i = 0; i < 2; ++i) {
      links.push_back(
          std::make_unique<RecordingLink>(shards_[i].get(), &records_[i]));
    }
    placement_[1] = {{1, 0, kCut}, {0, kCut, kLarge - kCut}};
    Reconnect(std::move(links));
    for (int64_t i = 0; i < kLarge; ++i) {
      gradients_[1][i] = static_cast<float>(i % 1000);
    }
  }

  RecordingLink::Record records_[2];
};

TEST_F(CutTensorTest, EachShardIsToldItsPiece) {
  ASSERT_THAT(client_->chief().Define({}), IsOk());
  const std::vector<TensorDef>& first = records_[0].defined;
  ASSERT_EQ(first.size(), 3);
  // Whole ones.
  EXPECT_FALSE(first[0].has_extent());
  EXPECT_FALSE(first[2].has_extent());
  EXPECT_EQ(first[1].name(), "tensor1");
  EXPECT_EQ(first[1].shape(0), kLarge);
  EXPECT_EQ(first[1].extent().begin(), kCut);
  EXPECT_EQ(first[1].extent().length(), kLarge - kCut);
  ASSERT_EQ(records_[1].defined.size(), 1);
  EXPECT_TRUE(records_[1].defined[0].has_extent());
  EXPECT_EQ(records_[1].defined[0].extent().begin(), 0);
  EXPECT_EQ(records_[1].defined[0].extent().length(), kCut);
}

TEST_F(CutTensorTest, RangesAreCutWhereTheTensorIs) {
  ASSERT_THAT(client_->chief().LoadModel({}, Views(gradients_)), IsOk());
  ASSERT_THAT(Pull(), IsOk());
  EXPECT_EQ(values_, gradients_);
  const auto snapshots = client_->chief().BeginSnapshot();
  ASSERT_THAT(snapshots, IsOk());
  std::vector<float> read(20);
  ASSERT_THAT(
      client_->chief().ReadSnapshot(*snapshots, 1, "", kCut - 7, 20,
                                    reinterpret_cast<char*>(read.data())),
      IsOk());
  const auto from = gradients_[1].begin() + (kCut - 7);
  EXPECT_EQ(read, std::vector<float>(from, from + 20));
}

TEST_F(CutTensorTest, UpdateCountsAreCutByBlocks) {
  const std::vector<int64_t> counts(9);
  ASSERT_THAT(client_->chief().Define({}), IsOk());
  ASSERT_THAT(
      client_->chief().Load("t", {{1, 1, ViewOf(absl::MakeConstSpan(counts))}}),
      IsOk());
  using Slices = std::vector<std::pair<int64_t, int64_t>>;
  EXPECT_EQ(records_[1].loaded, Slices({{1, 3}}));
  EXPECT_EQ(records_[0].loaded, Slices({{4, 6}}));
}

TEST_F(CutTensorTest, IsNotHeldByADevice) {
  options_.ps_names.resize(1);
  std::vector<std::unique_ptr<ParameterLink>> links;
  links.push_back(std::make_unique<FakeParameterLink>(shards_[0].get()));
  ParameterClient client(options_, std::move(links));
  placement_ = PlaceWhole(tensors_, {0, 0, 0}).value();
  placement_[1] = {{0, 0, kCut}, {0, kCut, kLarge - kCut}};
  ASSERT_THAT(client.SetModel(tensors_, placement_), IsOk());
  EXPECT_THAT(client.KeepOnDevice(nullptr),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("hold the parameters: 'tensor1' is in "
                                 "pieces on the ps tasks")));
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
