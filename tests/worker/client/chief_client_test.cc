#include "worker/client/chief_client.h"

#include <cstdlib>
#include <cstring>
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
#include "tests/testing/forwarding_parameter_link.h"
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

// Remembers what the chief says of rows, and loses the first read of them.
class RowsShard {
 public:
  // The slots of the second table.
  RowsShard(std::vector<DefineRequest>* defined, std::vector<std::string> slots)
      : defined_(*defined), slots_(std::move(slots)) {}

  class Link : public ForwardingParameterLink {
   public:
    explicit Link(RowsShard* shard)
        : ForwardingParameterLink(nullptr), shard_(*shard) {}

    void CallBytes(const AnyMethod&, std::string request, absl::Time,
                   ReplyCallback<std::string> done) override {
      DefineRequest& define = shard_.defined_.emplace_back();
      define.ParseFromString(request);
      DefineReply reply;
      reply.add_tables()->add_slots("accumulator");
      TableState& second = *reply.add_tables();
      for (const std::string& slot : shard_.slots_) second.add_slots(slot);
      done(reply.SerializeAsString());
    }
    void Load(Frame<LoadPart> request, absl::Time,
              ReplyCallback<LoadReply> done) override {
      shard_.loaded_.push_back(request);
      done(LoadReply());
    }
    void ReadSnapshot(const ReadSnapshotRequest& request, absl::Time,
                      ReplyCallback<Frame<SnapshotPart>> done) override {
      shard_.reads_.push_back(request);
      if (shard_.reads_.size() == 1) {
        return done(absl::UnavailableError("lost"));
      }
      Frame<SnapshotPart> reply;
      reply.header.mutable_next()->set_logical_shard(
          request.cursor().logical_shard() + 1);
      reply.data = absl::Cord("rows");
      done(std::move(reply));
    }
    int64_t best_part_bytes() const override { return kMaxPartBytes; }
    int best_window_parts() const override { return 1; }

   private:
    RowsShard& shard_;
  };

  const std::vector<Frame<LoadPart>>& loaded() const { return loaded_; }
  const std::vector<ReadSnapshotRequest>& reads() const { return reads_; }

 private:
  std::vector<DefineRequest>& defined_;
  const std::vector<std::string> slots_;
  std::vector<Frame<LoadPart>> loaded_;
  std::vector<ReadSnapshotRequest> reads_;
};

// Of the tables "user", rows of 2, and "item", rows of 3.
std::unique_ptr<ParameterClient> ClientOf(RowsShard (&shards)[2]) {
  static const MonotonicClock clock{};
  ParameterClient::Options options;
  options.clock = &clock;
  options.transfer.backoff.initial = absl::Milliseconds(1);
  std::vector<std::unique_ptr<ParameterLink>> links;
  for (RowsShard& shard : shards) {
    links.push_back(std::make_unique<RowsShard::Link>(&shard));
    options.ps_names.push_back("/job:ps/task:x");
  }
  auto client = std::make_unique<ParameterClient>(options, std::move(links));
  std::vector<TableDef> tables(2);
  tables[0].set_name("user");
  tables[0].set_dim(2);
  tables[1].set_name("item");
  tables[1].set_dim(3);
  EXPECT_THAT(client->SetModel({}, {}, tables), IsOk());
  client->SetEpoch(1, {11, 12});
  return client;
}

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

TEST(ChiefRowsTest, Define_TellsEachPsTheTablesAndItsShareOfThem) {
  std::vector<DefineRequest> defined;
  RowsShard shards[2] = {RowsShard(&defined, {"m"}),
                         RowsShard(&defined, {"m"})};
  const auto client = ClientOf(shards);
  ModelDefinition definition;
  definition.updates = 70;
  const auto slots = client->chief().Define(definition);
  ASSERT_THAT(slots, IsOk());
  EXPECT_EQ(slots->of_tables,
            std::vector<std::vector<std::string>>({{"accumulator"}, {"m"}}));
  ASSERT_EQ(defined.size(), 2);
  for (int ps = 0; ps < 2; ++ps) {
    EXPECT_EQ(defined[ps].tables_size(), 2);
    EXPECT_EQ(defined[ps].tables(1).dim(), 3);
    EXPECT_EQ(defined[ps].ps_index(), ps);
    EXPECT_EQ(defined[ps].num_ps(), 2);
    EXPECT_EQ(defined[ps].updates(), 70);
  }
}

TEST(ChiefRowsTest, Define_OfShardsThatKeepOtherSlots_IsInternal) {
  std::vector<DefineRequest> defined;
  RowsShard shards[2] = {RowsShard(&defined, {"m"}),
                         RowsShard(&defined, {"v"})};
  EXPECT_THAT(
      ClientOf(shards)->chief().Define({}),
      StatusIs(absl::StatusCode::kInternal, HasSubstr("keep different slots")));
}

TEST(ChiefRowsTest, LoadRows_SendsEachPsItsRowsWhole) {
  std::vector<DefineRequest> defined;
  RowsShard shards[2] = {RowsShard(&defined, {"m"}),
                         RowsShard(&defined, {"m"})};
  const auto client = ClientOf(shards);
  const std::vector<int64_t> ids = {5, -2, 900, 31};
  const std::vector<int64_t> updates = {50, 20, 9000, 310};
  const std::vector<float> values = {5, 5, -2, -2, 900, 900, 31, 31};
  const std::vector<float> slot = {6, 6, -1, -1, 901, 901, 32, 32};
  ASSERT_THAT(client->chief().LoadRows({0, ids, updates, {values, slot}}),
              IsOk());
  size_t rows = 0;
  for (RowsShard& shard : shards) {
    for (const Frame<LoadPart>& part : shard.loaded()) {
      EXPECT_EQ(part.header.rows().table(), "user");
      const int64_t n = part.header.rows().count();
      const std::string data(part.data);
      ASSERT_EQ(data.size(), n * (16 + 2 * 8));
      std::vector<int64_t> numbers(2 * n);
      std::memcpy(numbers.data(), data.data(), 16 * n);
      std::vector<float> floats(4 * n);
      std::memcpy(floats.data(), data.data() + 16 * n, 16 * n);
      for (int64_t i = 0; i < n; ++i) {
        const auto id = static_cast<float>(numbers[i]);
        EXPECT_EQ(std::abs(numbers[n + i]), std::abs(10 * numbers[i]));
        EXPECT_EQ(floats[2 * i], id);
        EXPECT_EQ(floats[2 * n + 2 * i + 1], id + 1);
      }
      rows += n;
    }
  }
  EXPECT_EQ(rows, ids.size());
  EXPECT_THAT(client->chief().LoadRows({0, ids, {}, {values}}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("0 counts of updates")));
  EXPECT_THAT(client->chief().LoadRows({0, ids, updates, {slot, {1}}}),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(ChiefRowsTest, ReadRows_AsksOnePsFromTheCursor) {
  std::vector<DefineRequest> defined;
  RowsShard shards[2] = {RowsShard(&defined, {"m"}),
                         RowsShard(&defined, {"m"})};
  const auto client = ClientOf(shards);
  std::vector<BeginSnapshotReply> snapshots(2);
  snapshots[1].set_snapshot(77);
  RowCursor cursor;
  cursor.set_logical_shard(600);
  cursor.set_after_id(-9);
  const auto part = client->chief().ReadRows(snapshots, 1, "item", cursor);
  ASSERT_THAT(part, IsOk());
  EXPECT_EQ(part->data, "rows");
  EXPECT_EQ(part->header.next().logical_shard(), 601);
  EXPECT_TRUE(shards[0].reads().empty());
  // The first was lost.
  ASSERT_EQ(shards[1].reads().size(), 2);
  const ReadSnapshotRequest& read = shards[1].reads().back();
  EXPECT_EQ(read.snapshot(), 77);
  EXPECT_EQ(read.table(), "item");
  EXPECT_EQ(read.cursor().logical_shard(), 600);
  EXPECT_EQ(read.cursor().after_id(), -9);
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
