#include "ps_server/shard/row_tables.h"

#include <functional>
#include <limits>
#include <memory>
#include <numeric>

#include "common/rpc/device_parameters.h"
#include "common/tensor/first_row.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/ps_server/shard/row_shard.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr absl::StatusCode kInvalid = absl::StatusCode::kInvalidArgument;

std::vector<float> FirstValues(const TableDef& def, int64_t id) {
  std::vector<float> values(def.dim());
  FirstRow(def).Fill(id, absl::MakeSpan(values));
  return values;
}

// ---- Definitions ------------------------------------------------------------

struct DefineCase {
  const char* name;
  std::function<void(DefineRequest&)> spoil;
  absl::StatusCode code;
  const char* message;
};

class TablesTest : public testing::TestWithParam<DefineCase> {};

TEST_P(TablesTest, ABadDefinition_IsRefusedByName) {
  ShardOptions options;
  options.incarnation = kPsIncarnation;
  options.max_bytes = 1 << 20;
  ParameterShard shard(options);
  const Sender chief = MakeSender(0, 100);
  ASSERT_THAT(shard.Hello(MakeHello(chief)), IsOk());
  DefineRequest define =
      MakeDefineTables(chief, {MakeTable("user", 4), MakeTable("item", 2)});
  GetParam().spoil(define);
  EXPECT_THAT(shard.Define(define),
              StatusIs(GetParam().code, HasSubstr(GetParam().message)));
  EXPECT_EQ(shard.phase(), EMPTY);
}

TableDef& User(DefineRequest& define) { return *define.mutable_tables(0); }

INSTANTIATE_TEST_SUITE_P(
    Definitions, TablesTest,
    testing::Values(
        DefineCase{"name", [](auto& d) { User(d).set_name("a b"); }, kInvalid,
                   "'a b'"},
        DefineCase{"dim0", [](auto& d) { User(d).set_dim(0); }, kInvalid,
                   "'user': rows of 0 values"},
        DefineCase{"dim", [](auto& d) { User(d).set_dim(65537); }, kInvalid,
                   "65537"},
        DefineCase{"twice", [](auto& d) { User(d).set_name("item"); }, kInvalid,
                   "'item'"},
        DefineCase{"tensor",
                   [](auto& d) { *d.add_tensors() = MakeTensor("user", {2}); },
                   kInvalid, "'user': a tensor"},
        DefineCase{
            "rule",
            [](auto& d) { User(d).mutable_optimizer()->set_name("adagard"); },
            absl::StatusCode::kNotFound, "adagrad"},
        DefineCase{"decay",
                   [](auto& d) {
                     User(d).mutable_optimizer()->Clear();
                     User(d).mutable_optimizer()->set_name("adamw");
                   },
                   kInvalid, "weight_decay"},
        DefineCase{"scale",
                   [](auto& d) {
                     User(d).set_scale(std::numeric_limits<float>::quiet_NaN());
                   },
                   kInvalid, "scale"},
        DefineCase{"max_rows", [](auto& d) { User(d).set_max_rows(-1); },
                   kInvalid, "max_rows -1"},
        DefineCase{"ps", [](auto& d) { d.set_ps_index(1); }, kInvalid,
                   "ps task 1 of 1"},
        DefineCase{"num_ps", [](auto& d) { d.set_num_ps(0); }, kInvalid,
                   "of 0"},
        DefineCase{"too_many_ps", [](auto& d) { d.set_num_ps(1025); }, kInvalid,
                   "of 1025"},
        DefineCase{"in_place",
                   [](auto& d) {
                     d.mutable_replication()->mutable_async()->set_pull(
                         IN_PLACE);
                   },
                   kInvalid, "IN_PLACE"},
        DefineCase{"memory",
                   [](auto& d) {
                     for (int i = 0; i < 40; ++i) {
                       *d.add_tables() = MakeTable(absl::StrCat("t", i), 1);
                     }
                   },
                   kInvalid, "42 tables"}),
    [](const auto& info) { return info.param.name; });

TEST(TablesTest, Define_TellsTheSlotsAndTheLogicalShards) {
  ParameterShard shard([] {
    ShardOptions options;
    options.incarnation = kPsIncarnation;
    options.ps_index = 1;
    return options;
  }());
  const Sender chief = MakeSender(0, 100);
  ASSERT_THAT(shard.Hello(MakeHello(chief)), IsOk());
  const auto reply = shard.Define(
      MakeDefineTables(chief, {MakeTable("user", 4, "adam")}, 1, 3));
  ASSERT_THAT(reply, IsOk());
  EXPECT_THAT(reply->tables(0).slots(), ElementsAre("m", "v"));
  EXPECT_EQ(reply->tables(0).first_logical_shard(), 342);
  EXPECT_EQ(reply->tables(0).end_logical_shard(), 683);
}

// ---- Pulls ------------------------------------------------------------------

TEST(RowTablesTest, APullOfAnUnseenRow_AnswersFirstValuesAndCreatesNothing) {
  const TableDef def = MakeTable("user", 3);
  RowShard shard({def});
  const int64_t bytes = shard.Table().bytes();
  const std::vector<float> values = shard.Pull("user", {-5, 9, -5});
  ASSERT_EQ(values.size(), 9);
  EXPECT_EQ(std::vector<float>(values.begin(), values.begin() + 3),
            FirstValues(def, -5));
  EXPECT_EQ(std::vector<float>(values.begin() + 6, values.end()),
            FirstValues(def, -5));
  EXPECT_EQ(shard.Table().rows(), 0);
  EXPECT_EQ(shard.Table().bytes(), bytes);
}

TEST(RowTablesTest, APullOfSeveralTables_HasTheirRowsInOrder) {
  RowShard shard({MakeTable("user", 1), MakeTable("item", 2)});
  shard.Push(1, {{"user", {1}, {-1}}, {"item", {1}, {-2, -3}}});
  const auto reply = shard.shard().PullRows(
      MakePullRows(shard.chief(), {{"item", {1, 2}, {}}, {"user", {1}, {}}}));
  ASSERT_THAT(reply, IsOk());
  const std::vector<float> item = FirstValues(MakeTable("item", 2), 1);
  const std::vector<float> values = ValuesOf<float>(reply->data);
  ASSERT_EQ(values.size(), 5);
  EXPECT_EQ(values[0], item[0] + 2);
  EXPECT_EQ(values[1], item[1] + 3);
  EXPECT_EQ(values[4], FirstValues(MakeTable("user", 1), 1)[0] + 1);
  EXPECT_EQ(reply->header.version(), 1);
}

TEST(RowTablesTest, ABadPull_IsRefused) {
  RowShard shard({MakeTable("user", 65536)}, 0, 2);
  const RowHash hash("user");
  int64_t mine = 0, others = 0;
  while (hash.LogicalShardOf(mine) >= 512) ++mine;
  while (hash.LogicalShardOf(others) < 512) ++others;
  const auto pull = [&](const Frame<PullRowsRequest>& request) {
    return shard.shard().PullRows(request);
  };
  EXPECT_THAT(pull(MakePullRows(shard.chief(), {{"user", {others}, {}}})),
              StatusIs(kInvalid, HasSubstr("logical shard")));
  EXPECT_THAT(pull(MakePullRows(shard.chief(), {{"users", {mine}, {}}})),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("'user'")));
  EXPECT_THAT(pull(MakePullRows(shard.chief(),
                                {{"user", std::vector<int64_t>(5, mine), {}}})),
              StatusIs(kInvalid, HasSubstr("fewer rows")));
  for (const int64_t count : {int64_t{-1}, int64_t{2}, INT64_MAX}) {
    auto wrong = MakePullRows(shard.chief(), {{"user", {mine}, {}}});
    wrong.header.mutable_rows(0)->set_count(count);
    EXPECT_THAT(pull(wrong), StatusIs(kInvalid)) << count;
  }
}

// ---- Pushes -----------------------------------------------------------------

TEST(RowTablesTest, APart_IsAppliedOnceInAnyOrderOfItsRows) {
  RowShard shard({MakeTable("user", 1)});
  std::vector<int64_t> ids(1000);
  std::iota(ids.begin(), ids.end(), -500);
  std::vector<float> gradients;
  for (const int64_t id : ids) gradients.push_back(static_cast<float>(-id));
  const std::vector<float> before = shard.Pull("user", ids);
  const auto push = MakeRowPush(shard.chief(), 1, {{"user", ids, gradients}});
  ASSERT_THAT(shard.shard().Push(push), IsOk());
  const auto again = shard.shard().Push(push);
  ASSERT_THAT(again, IsOk());
  EXPECT_TRUE(again->header.duplicate());
  const std::vector<float> values = shard.Pull("user", ids);
  for (size_t i = 0; i < ids.size(); ++i) {
    EXPECT_EQ(values[i], before[i] + static_cast<float>(ids[i]));
  }
  EXPECT_EQ(shard.Table().rows(), 1000);
  EXPECT_EQ(shard.Table().created_rows(), 1000);
}

TEST(RowTablesTest, APartWithoutRows_CountsAsAStep) {
  RowShard shard({MakeTable("user", 1)});
  shard.Push(1, {});
  EXPECT_EQ(shard.shard().State().version(), 1);
}

struct PushCase {
  const char* name;
  std::function<void(Frame<PushPart>&)> spoil;
  const char* message;
  absl::StatusCode code = kInvalid;
};

class BadRowPushTest : public testing::TestWithParam<PushCase> {};

TEST_P(BadRowPushTest, IsRefusedAndChangesNothing) {
  RowShard shard({MakeTable("user", 2)});
  shard.Push(1, {{"user", {1}, {1, 1}}});
  const TableState before = shard.Table();
  auto push = MakeRowPush(shard.chief(), 2, {{"user", {1, 2}, {1, 2, 3, 4}}});
  GetParam().spoil(push);
  EXPECT_THAT(shard.shard().Push(push),
              StatusIs(GetParam().code, HasSubstr(GetParam().message)));
  EXPECT_EQ(shard.Table().DebugString(), before.DebugString());
  EXPECT_EQ(shard.shard().State().version(), 1);
}

INSTANTIATE_TEST_SUITE_P(
    Parts, BadRowPushTest,
    testing::Values(
        PushCase{"no_flag", [](auto& p) { p.header.set_is_rows(false); },
                 "is_rows"},
        PushCase{
            "slices",
            [](auto& p) { *p.header.add_slices() = MakeSlice("user", 0, 1); },
            "no slices"},
        PushCase{"codec", [](auto& p) { p.header.set_codec("float16"); },
                 "no codec"},
        PushCase{"values", [](auto& p) { p.header.set_wants_values(true); },
                 "wants no values"},
        PushCase{"twice",
                 [](auto& p) {
                   const Sender chief = p.header.sender();
                   p = MakeRowPush(chief, 2, {{"user", {7, 7}, {1, 2, 3, 4}}});
                 },
                 "row 7 of 'user' is there twice"},
        PushCase{"two_runs",
                 [](auto& p) {
                   const Sender chief = p.header.sender();
                   p = MakeRowPush(
                       chief, 2,
                       {{"user", {7}, {1, 2}}, {"user", {8}, {3, 4}}});
                 },
                 "two runs"},
        PushCase{"unknown",
                 [](auto& p) { p.header.mutable_rows(0)->set_table("usr"); },
                 "did you mean 'user'", absl::StatusCode::kNotFound},
        PushCase{"short",
                 [](auto& p) { p.data = p.data.Subcord(0, p.data.size() - 1); },
                 "32 bytes"},
        PushCase{
            "count",
            [](auto& p) { p.header.mutable_rows(0)->set_count(INT64_MAX / 8); },
            "at most"},
        PushCase{"runs",
                 [](auto& p) {
                   for (int i = 0; i < 1024; ++i) p.header.add_rows();
                 },
                 "1025 runs"},
        PushCase{
            "nan",
            [](auto& p) {
              const Sender chief = p.header.sender();
              const float nan = std::numeric_limits<float>::quiet_NaN();
              p = MakeRowPush(chief, 2, {{"user", {7, 8}, {1, 2, 3, nan}}});
            },
            "row 8 of 'user' has NaN"}),
    [](const auto& info) { return info.param.name; });

TEST(RowTablesTest, NewRowsBeyondTheLimit_AreRefusedWithAllOfTheirPart) {
  const Sender chief = MakeSender(0, 100);
  RowShard shard(MakeDefineTables(chief, {MakeTable("user", 64)}),
                 int64_t{1} << 20);
  shard.Seal();
  std::vector<int64_t> ids(1000);
  int64_t next = 0;
  absl::Status status;
  int64_t step = 1;
  TableState before;
  while (status.ok()) {
    before = shard.Table();
    std::iota(ids.begin(), ids.end(), next);
    next += 1000;
    status =
        shard.shard()
            .Push(MakeRowPush(chief, step++,
                              {{"user", ids, std::vector<float>(64000, 1.0F)}}))
            .status();
    ASSERT_LE(shard.shard().State().tables(0).bytes(), 1 << 20);
  }
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kResourceExhausted,
                               HasSubstr("'user'")));
  EXPECT_THAT(status.message(), HasSubstr("max_rows"));
  EXPECT_GT(before.rows(), 1000);
  EXPECT_EQ(shard.Table().DebugString(), before.DebugString());
  // Known rows still are updated.
  shard.Push(step, {{"user", {1}, std::vector<float>(64, 1.0F)}});
}

TEST(RowTablesTest, RowsOfAnotherNamespace_TakeFromTheLimit) {
  ShardOptions options;
  options.incarnation = kPsIncarnation;
  options.max_bytes = 1 << 20;
  options.max_namespaces = 2;
  ParameterShard shard(options);
  std::vector<int64_t> ids(1800);
  std::iota(ids.begin(), ids.end(), 0);
  std::vector<absl::StatusCode> codes;
  // Both have tables before either has rows.
  std::vector<Sender> senders(2, MakeSender(0, 100));
  senders[1].set_namespace_("other");
  for (const Sender& sender : senders) {
    ASSERT_THAT(shard.Hello(MakeHello(sender)), IsOk());
    ASSERT_THAT(shard.Define(MakeDefineTables(sender, {MakeTable("user", 64)})),
                IsOk());
    ASSERT_THAT(shard.Seal(MakeSeal(sender)), IsOk());
  }
  for (const Sender& sender : senders) {
    codes.push_back(
        shard
            .Push(MakeRowPush(
                sender, 1,
                {{"user", ids, std::vector<float>(ids.size() * 64, 1.0F)}}))
            .status()
            .code());
  }
  EXPECT_THAT(codes, ElementsAre(absl::StatusCode::kOk,
                                 absl::StatusCode::kResourceExhausted));
}

// ---- Loads and snapshots ----------------------------------------------------

TEST(RowTablesTest, ASnapshotThatWasLoaded_GoesOnAlike) {
  TableDef def = MakeTable("user", 3, "adam");
  def.set_max_rows(2 * kLogicalShards);
  RowShard shard({def});
  std::vector<int64_t> ids(5000);
  std::iota(ids.begin(), ids.end(), 0);
  const std::vector<float> gradients(15000, 0.5F);
  for (int64_t step = 1; step <= 3; ++step) {
    shard.Push(step, {{"user", ids, gradients}});
  }
  EXPECT_GT(shard.Table().evicted_rows(), 0);
  const std::vector<float> values = shard.Pull("user", ids);
  const uint64_t snapshot = shard.BeginSnapshot();
  std::iota(ids.begin(), ids.end(), 2500);
  shard.Push(4, {{"user", ids, gradients}});
  const auto parts = shard.ReadRows(snapshot, "user");

  RowShard loaded(MakeDefineTables(shard.chief(), {def}));
  int64_t rows = 0;
  for (const auto& part : parts) {
    rows += part.header.rows().count();
    EXPECT_THAT(
        loaded.shard().Load(MakeRowLoad(shard.chief(), "user",
                                        part.header.rows().count(), part.data)),
        IsOk());
  }
  loaded.Seal();
  EXPECT_EQ(loaded.Table().rows(), rows);
  std::iota(ids.begin(), ids.end(), 0);
  EXPECT_EQ(loaded.Pull("user", ids), values);
  loaded.Push(4, {{"user", {2, 3}, {1, 2, 3, 4, 5, 6}}});
}

TEST(RowTablesTest, ABadLoad_IsRefused) {
  const Sender chief = MakeSender(0, 100);
  RowShard shard(MakeDefineTables(chief, {MakeTable("user", 1, "adagrad")}));
  const auto load = [&](int64_t id, int64_t count, float value,
                        int64_t rows = 1) {
    absl::Cord data = BytesOf(std::vector<int64_t>{id, count});
    data.Append(BytesOf(std::vector<float>{value, 1}));
    return shard.shard().Load(MakeRowLoad(chief, "user", rows, data));
  };
  EXPECT_THAT(load(3, -1, 1), StatusIs(kInvalid, HasSubstr("count")));
  EXPECT_THAT(load(3, 1, std::numeric_limits<float>::infinity()),
              StatusIs(kInvalid, HasSubstr("NaN or infinity")));
  EXPECT_THAT(load(3, 1, 1, 2), StatusIs(kInvalid, HasSubstr("bytes")));
  EXPECT_EQ(shard.Table().rows(), 0);
  EXPECT_THAT(load(3, 1, 1), IsOk());
  EXPECT_THAT(load(3, 2, 5), IsOk());
  shard.Seal();
  EXPECT_THAT(shard.Pull("user", {3}), ElementsAre(5));
}

TEST(RowTablesTest, ReadingBehindTheCursor_IsRefused) {
  RowShard shard({MakeTable("user", 1)});
  const uint64_t snapshot = shard.BeginSnapshot();
  ReadSnapshotRequest read;
  *read.mutable_sender() = shard.chief();
  *read.mutable_fence() = MakeFence();
  read.set_snapshot(snapshot);
  read.set_table("user");
  read.mutable_cursor()->set_logical_shard(5);
  EXPECT_THAT(shard.shard().ReadSnapshot(read), IsOk());
  EXPECT_THAT(shard.shard().ReadSnapshot(read), IsOk());
  for (const int logical_shard : {4, -1, 1024}) {
    read.mutable_cursor()->set_logical_shard(logical_shard);
    EXPECT_THAT(shard.shard().ReadSnapshot(read),
                StatusIs(kInvalid, HasSubstr("logical shard")));
  }
}

TEST(RowTablesTest, ANewModel_HasNoRowsOfTheOld) {
  RowShard shard({MakeTable("user", 1)});
  shard.Push(1, {{"user", {1}, {1}}});
  DefineRequest define =
      MakeDefineTables(shard.chief(), {MakeTable("user", 1)});
  define.set_model_epoch(2);
  ASSERT_THAT(shard.shard().Define(define), IsOk());
  EXPECT_EQ(shard.Table().rows(), 0);
}

TEST(RowTablesTest, AModelWithTables_IsNotHeldOnADevice) {
  class NoDevice : public DeviceParameters {
   public:
    absl::Status Take(absl::Span<const ResidentTensor>) override {
      ADD_FAILURE();
      return absl::OkStatus();
    }
    void Update(int, int64_t, int64_t, const BlockUpdate&) override {}
    absl::Status WriteBack(absl::Span<const ResidentTensor>) override {
      return absl::OkStatus();
    }
  } device;
  RowShard shard({MakeTable("user", 1)});
  EXPECT_THAT(
      shard.shard().KeepOnDevice(shard.chief(), MakeFence(), &device),
      StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("tables")));
}

}  // namespace
}  // namespace muster
