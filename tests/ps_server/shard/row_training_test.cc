// Tables through a shard: the numbers that training makes of rows.
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "common/optimizer/update_rule.h"
#include "common/tensor/first_row.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/ps_server/shard/row_shard.h"
#include "tests/ps_server/shard/sync_shard.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::ElementsAre;

TableDef MakeZeros(const std::string& name, int64_t dim,
                   const std::string& rule = "sgd") {
  TableDef def = MakeTable(name, dim, rule);
  def.set_initial(ZEROS);
  return def;
}

// ---- Rows are a parameter's ------------------------------------------------

constexpr int64_t kRows = 30;
constexpr int64_t kDim = 5;

// The rule, and whether a row may be left out of a step.
class OneHotTest
    : public testing::TestWithParam<std::tuple<std::string, bool>> {};

TEST_P(OneHotTest, RowsAndADenseParameter_HaveTheSameBits) {
  const auto& [rule, leaves_out] = GetParam();
  const Sender chief = MakeSender(0, 100);
  TableDef def = MakeTable("user", kDim, rule);
  OptimizerSpec& spec = *def.mutable_optimizer();
  spec.mutable_schedule()->set_name("exponential");
  spec.mutable_schedule()->set_decay_steps(50);
  spec.mutable_schedule()->set_decay_rate(0.5);
  if (rule == "adamw") {
    Attr* const decay = spec.add_attr();
    decay->set_name("weight_decay");
    decay->set_f(0);
  }
  DefineRequest define = MakeDefineTables(chief, {def});
  *define.add_tensors() = MakeTensor("w", {kRows, kDim});
  *define.mutable_optimizer() = spec;
  RowShard shard(define);
  const TensorSlice all = MakeSlice("w", 0, kRows * kDim);
  std::vector<float> first(kRows * kDim);
  std::vector<int64_t> every;
  for (int64_t id = 0; id < kRows; ++id) {
    FirstRow(def).Fill(id, absl::MakeSpan(first).subspan(id * kDim, kDim));
    every.push_back(id);
  }
  ASSERT_THAT(shard.shard().Load(MakeLoad(chief, {all}, BytesOf(first))),
              IsOk());
  shard.Seal();
  std::mt19937 random(3);
  for (int64_t step = 1; step <= 200; ++step) {
    std::vector<float> dense(kRows * kDim, 0.0F);
    TestRows rows = {"user", {}, {}};
    for (const int64_t id : every) {
      if (leaves_out && random() % 3 != 0) continue;
      rows.ids.push_back(id);
      for (int64_t i = 0; i < kDim; ++i) {
        const float value = static_cast<float>(random() % 2001) / 1000 - 1;
        dense[id * kDim + i] = value;
        rows.values.push_back(value);
      }
    }
    // Either may be the first of its step to come.
    const Frame<PushPart> pushes[] = {
        MakePush(chief, step, {all}, BytesOf(dense), 0, 2),
        MakeRowPush(chief, step, {rows}, 1, 2)};
    ASSERT_THAT(shard.shard().Push(pushes[step % 2]), IsOk());
    ASSERT_THAT(shard.shard().Push(pushes[1 - step % 2]), IsOk());
    const auto pulled = shard.shard().Pull(MakePull(chief, {all}));
    ASSERT_THAT(pulled, IsOk());
    ASSERT_EQ(shard.Pull("user", every), ValuesOf<float>(pulled->data)) << step;
  }
}

INSTANTIATE_TEST_SUITE_P(Rules, OneHotTest,
                         testing::Values(std::make_tuple("sgd", true),
                                         std::make_tuple("adagrad", true),
                                         std::make_tuple("momentum", false),
                                         std::make_tuple("rmsprop", false),
                                         std::make_tuple("adam", false),
                                         std::make_tuple("adamw", false),
                                         std::make_tuple("ftrl", false)),
                         [](const auto& info) {
                           return std::get<0>(info.param);
                         });

TEST(RowTrainingTest, ARowsFirstUpdate_IsTheFirstOneToItsRule) {
  RowShard shard({MakeZeros("user", 1, "adam")});
  shard.Push(1, {{"user", {1}, {0.5F}}});
  for (int64_t step = 2; step < 9; ++step) {
    shard.Push(step, {{"user", {1}, {-0.25F}}});
  }
  const float before = shard.Pull("user", {1})[0];
  shard.Push(9, {{"user", {2}, {0.5F}}});
  EXPECT_EQ(shard.Pull("user", {1})[0], before);
  RowShard other({MakeZeros("user", 1, "adam")});
  other.Push(1, {{"user", {2}, {0.5F}}});
  EXPECT_EQ(shard.Pull("user", {2}), other.Pull("user", {2}));
}

TEST(RowTrainingTest, ASchedule_SeesTheUpdatesOfTheModel) {
  TableDef def = MakeZeros("user", 1);
  ScheduleSpec* const schedule = def.mutable_optimizer()->mutable_schedule();
  schedule->set_name("piecewise");
  schedule->add_boundary(12);
  schedule->add_value(1);
  schedule->add_value(10);
  DefineRequest define = MakeDefineTables(MakeSender(0, 100), {def});
  define.set_updates(10);
  RowShard shard(define);
  shard.Seal();
  // After 10, 11 and 12 updates.
  for (int64_t step = 1; step <= 3; ++step) {
    shard.Push(step, {{"user", {step}, {-1}}});
  }
  // Both parts are of the update after 13.
  for (const int part : {1, 0}) {
    ASSERT_THAT(shard.shard().Push(MakeRowPush(
                    shard.chief(), 4, {{"user", {4 + part}, {-1}}}, part, 2)),
                IsOk());
  }
  EXPECT_THAT(shard.Pull("user", {1, 2, 3, 4, 5}),
              ElementsAre(1, 1, 1, 10, 10));
}

// ---- Eviction ---------------------------------------------------------------

// The rows that a worker's steps leave on so many ps tasks, in their order.
std::vector<std::pair<int64_t, float>> RowsAfterSteps(int num_ps) {
  TableDef def = MakeTable("user", 1, "adagrad");
  def.set_max_rows(2 * kLogicalShards);
  std::vector<std::unique_ptr<RowShard>> shards;
  for (int ps = 0; ps < num_ps; ++ps) {
    shards.push_back(
        std::make_unique<RowShard>(std::vector<TableDef>{def}, ps, num_ps));
  }
  const RowHash hash("user");
  std::mt19937 random(5);
  for (int64_t step = 1; step <= 20; ++step) {
    std::map<std::pair<int, int64_t>, float> rows;
    for (int i = 0; i < 500; ++i) {
      const auto id = static_cast<int64_t>(random() % 5000);
      rows[{hash.LogicalShardOf(id), id}] = static_cast<float>(random() % 9);
    }
    std::vector<TestRows> parts(num_ps, {"user", {}, {}});
    for (const auto& [key, gradient] : rows) {
      TestRows& part = parts[PsOfLogicalShard(key.first, num_ps)];
      part.ids.push_back(key.second);
      part.values.push_back(gradient);
    }
    for (int ps = 0; ps < num_ps; ++ps) shards[ps]->Push(step, {parts[ps]});
  }
  std::vector<std::pair<int64_t, float>> left;
  for (const auto& shard : shards) {
    EXPECT_GT(shard->Table().evicted_rows(), 0);
    for (const auto& part : shard->ReadRows(shard->BeginSnapshot(), "user")) {
      const auto count = static_cast<size_t>(part.header.rows().count());
      const auto ids = ValuesOf<int64_t>(part.data.Subcord(0, count * 8));
      const auto values =
          ValuesOf<float>(part.data.Subcord(count * 16, count * 4));
      for (size_t i = 0; i < count; ++i) left.emplace_back(ids[i], values[i]);
    }
  }
  return left;
}

TEST(RowTrainingTest, Eviction_LeavesTheSameRowsOnAnyNumberOfTasks) {
  const auto one = RowsAfterSteps(1);
  EXPECT_GT(one.size(), 1000);
  EXPECT_EQ(RowsAfterSteps(2), one);
  EXPECT_EQ(RowsAfterSteps(3), one);
}

// ---- Synchronous replication ------------------------------------------------

// Three workers with the token of round 1, and no dense parameter.
class RowSyncTest : public testing::Test {
 protected:
  static constexpr int64_t kStep = 1;

  explicit RowSyncTest(int64_t max_bytes = int64_t{1} << 30)
      : shard_(Define(), max_bytes) {
    shard_.Seal();
    for (const Sender& worker : {a_, b_, c_}) {
      EXPECT_THAT(shard_.shard().Hello(MakeHello(worker)), IsOk());
    }
    shard_.Pull("user", {}, MakeToken(1));
  }

  static DefineRequest Define() {
    DefineRequest define =
        MakeDefineTables(MakeSender(0, 100), {MakeZeros("user", 1)});
    define.mutable_replication()->mutable_sync();
    return define;
  }

  absl::StatusOr<Frame<PushReply>> Push(const Sender& worker,
                                        const std::vector<int64_t>& ids,
                                        const std::vector<float>& gradients,
                                        int part = 0, int parts = 1) {
    auto push =
        MakeRowPush(worker, kStep, {{"user", ids, gradients}}, part, parts);
    push.header.set_round(1);
    return shard_.shard().Push(push);
  }

  const Sender a_ = MakeSender(1, 101);
  const Sender b_ = MakeSender(2, 102);
  const Sender c_ = MakeSender(3, 103);
  RowShard shard_;
};

TEST_F(RowSyncTest, TheMean_IsOverAllChosenWorkers) {
  ASSERT_THAT(Push(a_, {1, 2}, {3, 6}), IsOk());
  ASSERT_THAT(Push(b_, {1}, {-9}), IsOk());
  ASSERT_THAT(Push(c_, {}, {}), IsOk());
  EXPECT_EQ(shard_.Table().rows(), 0);
  const StepToken token = MakeToken(
      2, {MakeChosen(c_, kStep), MakeChosen(b_, kStep), MakeChosen(a_, kStep)});
  EXPECT_THAT(shard_.Pull("user", {1, 2, 3}, token), ElementsAre(2, -2, 0));
  EXPECT_EQ(shard_.shard().State().version(), 1);
  EXPECT_THAT(shard_.Pull("user", {1, 2, 3}, token), ElementsAre(2, -2, 0));
}

TEST_F(RowSyncTest, TheSum_IsInTheOrderOfTheToken) {
  ASSERT_THAT(Push(a_, {1}, {1e8F}), IsOk());
  ASSERT_THAT(Push(b_, {1}, {-1e8F}), IsOk());
  ASSERT_THAT(Push(c_, {1}, {-3}), IsOk());
  EXPECT_THAT(
      shard_.Pull("user", {1},
                  MakeToken(2, {MakeChosen(a_, kStep), MakeChosen(b_, kStep),
                                MakeChosen(c_, kStep)})),
      ElementsAre(1));
}

TEST_F(RowSyncTest, WhoIsNotChosen_LeavesNothing) {
  ASSERT_THAT(Push(a_, {1}, {-1}), IsOk());
  ASSERT_THAT(Push(b_, {2}, {-1}), IsOk());
  EXPECT_THAT(
      shard_.Pull("user", {1, 2}, MakeToken(2, {MakeChosen(a_, kStep)})),
      ElementsAre(1, 0));
  EXPECT_EQ(shard_.Table().rows(), 1);
}

TEST_F(RowSyncTest, LateAndRepeatedParts_ChangeNothing) {
  ASSERT_THAT(Push(a_, {1}, {-1}, 0, 2), IsOk());
  ASSERT_THAT(Push(a_, {2}, {-1}, 1, 2), IsOk());
  const auto again = Push(a_, {2}, {-1}, 1, 2);
  ASSERT_THAT(again, IsOk());
  EXPECT_TRUE(again->header.duplicate());
  const StepToken token = MakeToken(2, {MakeChosen(a_, kStep)});
  EXPECT_THAT(shard_.Pull("user", {1, 2}, token), ElementsAre(1, 1));
  const auto late = Push(b_, {1, 3}, {-1, -1});
  ASSERT_THAT(late, IsOk());
  EXPECT_TRUE(late->header.late());
  EXPECT_THAT(shard_.Pull("user", {1, 2, 3}, token), ElementsAre(1, 1, 0));
  EXPECT_EQ(shard_.Table().rows(), 2);
}

TEST_F(RowSyncTest, AStepThatIsNotWhole_IsNoUpdate) {
  ASSERT_THAT(Push(a_, {1}, {-1}, 0, 2), IsOk());
  auto pull = MakePullRows(shard_.chief(), {{"user", {1}, {}}});
  *pull.header.mutable_token() = MakeToken(2, {MakeChosen(a_, kStep)});
  EXPECT_THAT(shard_.shard().PullRows(pull),
              StatusIs(absl::StatusCode::kInternal));
  EXPECT_EQ(shard_.Table().rows(), 0);
}

class SmallRowSyncTest : public RowSyncTest {
 protected:
  SmallRowSyncTest() : RowSyncTest(int64_t{1} << 20) {}

  std::vector<int64_t> Ids(int64_t first, int64_t count) {
    std::vector<int64_t> ids;
    for (int64_t i = 0; i < count; ++i) ids.push_back(first + i);
    return ids;
  }
};

TEST_F(SmallRowSyncTest, RowsThatAnUpdateWillMake_CountBefore) {
  constexpr int64_t kMany = 6000;
  const std::vector<float> gradients(kMany, -1.0F);
  ASSERT_THAT(Push(a_, Ids(0, kMany), gradients), IsOk());
  EXPECT_THAT(Push(b_, Ids(kMany, kMany), gradients),
              StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_EQ(shard_.Pull("user", {5}, MakeToken(2, {MakeChosen(a_, kStep)}))[0],
            1);
  EXPECT_EQ(shard_.Table().rows(), kMany);
}

}  // namespace
}  // namespace muster
