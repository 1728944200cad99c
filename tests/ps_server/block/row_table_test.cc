#include "ps_server/block/row_table.h"

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/tensor/first_row.h"
#include "common/tensor/row_hash.h"
#include "gtest/gtest.h"
#include "ps_server/block/shard_snapshot.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

constexpr int64_t kMuch = int64_t{1} << 40;

TableDef MakeTable(int64_t dim, const std::string& rule = "adagrad",
                   int64_t max_rows = 0) {
  TableDef def;
  def.set_name("user");
  def.set_dim(dim);
  def.mutable_optimizer()->set_name(rule);
  def.set_scale(0.05F);
  def.set_seed(7);
  def.set_max_rows(max_rows);
  return def;
}

std::unique_ptr<UpdateRule> RuleOf(const TableDef& def) {
  auto rule = CreateUpdateRule(def.optimizer());
  EXPECT_THAT(rule, IsOk());
  return *std::move(rule);
}

// All of a table, as plainly as can be.
class PlainTable {
 public:
  struct Row {
    std::vector<float> floats;
    int64_t updates = 0;
    int64_t version = -1;

    bool operator==(const Row& other) const {
      return floats == other.floats && updates == other.updates;
    }
  };
  // By logical shard, then id.
  using Rows = std::map<std::pair<int, int64_t>, Row>;

  explicit PlainTable(const TableDef& def)
      : def_(def), rule_(RuleOf(def)), hash_(def.name()) {}

  std::vector<float> Values(int64_t id) const {
    const auto found = rows_.find(Key(id));
    std::vector<float> values(def_.dim());
    if (found == rows_.end()) {
      FirstRow(def_).Fill(id, absl::MakeSpan(values));
    } else {
      std::copy_n(found->second.floats.begin(), def_.dim(), values.begin());
    }
    return values;
  }

  void Update(int64_t id, const std::vector<float>& gradient, int64_t updates) {
    if (rows_.count(Key(id)) == 0) Create(id);
    Row& row = rows_[Key(id)];
    std::vector<float*> slots;
    for (size_t i = 1; i <= rule_->slots().size(); ++i) {
      slots.push_back(row.floats.data() + i * def_.dim());
    }
    BlockUpdate update;
    update.t = ++row.updates;
    update.updates = updates;
    update.updates_before = row.version;
    rule_->Apply(update, gradient.data(), row.floats.data(), slots, def_.dim());
    row.version = updates;
  }

  const Rows& rows() const { return rows_; }
  int evicted() const { return evicted_; }

 private:
  std::pair<int, int64_t> Key(int64_t id) const {
    return {hash_.LogicalShardOf(id), id};
  }

  void Create(int64_t id) {
    Evict(Key(id).first);
    Row row;
    row.floats = Values(id);
    for (const SlotDef& slot : rule_->slots()) {
      row.floats.insert(row.floats.end(), def_.dim(), slot.initial_value);
    }
    rows_[Key(id)] = row;
  }

  void Evict(int shard) {
    if (def_.max_rows() == 0) return;
    auto oldest = rows_.end();
    int64_t count = 0;
    for (auto it = rows_.lower_bound({shard, INT64_MIN});
         it != rows_.end() && it->first.first == shard; ++it) {
      ++count;
      if (oldest == rows_.end() ||
          it->second.version < oldest->second.version) {
        oldest = it;
      }
    }
    if (count < std::max<int64_t>(1, def_.max_rows() / kLogicalShards)) return;
    rows_.erase(oldest);
    ++evicted_;
  }

  const TableDef def_;
  const std::unique_ptr<UpdateRule> rule_;
  const RowHash hash_;
  Rows rows_;
  int evicted_ = 0;
};

// Reads what the snapshot has of the table, `at_once` rows at a time, each
// part twice; `between` is called between two parts.
template <typename Between>
PlainTable::Rows ReadAll(RowTable* table, ShardSnapshot* snapshot,
                         int64_t at_once, const Between& between) {
  PlainTable::Rows rows;
  RowCursor cursor;
  cursor.set_logical_shard(table->first_logical_shard());
  std::pair<int, int64_t> last = {-1, 0};
  for (bool goes_on = true; goes_on;) {
    RowTable::SnapshotRows read;
    for (int again = 0; again < 2; ++again) {
      const auto before =
          std::exchange(read, table->ReadSnapshot(cursor, at_once, snapshot));
      if (again == 1) {
        EXPECT_EQ(read.ids, before.ids);
      }
    }
    for (size_t i = 0; i < read.ids.size(); ++i) {
      const std::pair<int, int64_t> key = {
          table->hash().LogicalShardOf(read.ids[i]), read.ids[i]};
      EXPECT_LT(last, key);
      last = key;
      PlainTable::Row& row = rows[key];
      row.floats.assign(read.values[i],
                        read.values[i] + table->floats_per_row());
      row.updates = read.updates[i];
    }
    goes_on = read.next.has_value();
    if (goes_on) cursor = *read.next;
    between();
  }
  return rows;
}

class RowTableTest : public testing::Test {
 protected:
  // Of the whole table.
  static RowTable Make(const TableDef& def) {
    return RowTable(def, RuleOf(def), 0, kLogicalShards);
  }
  static std::vector<int64_t> Sorted(const RowTable& table,
                                     std::set<int64_t> ids) {
    std::vector<int64_t> sorted(ids.begin(), ids.end());
    std::sort(sorted.begin(), sorted.end(), [&](int64_t a, int64_t b) {
      return std::make_pair(table.hash().LogicalShardOf(a), a) <
             std::make_pair(table.hash().LogicalShardOf(b), b);
    });
    return sorted;
  }
  // One update of the rows.
  void Push(RowTable* table, const std::vector<int64_t>& ids,
            const std::vector<float>& gradients, int64_t updates) {
    ASSERT_TRUE(table->Reserve(table->CountNew(ids)));
    table->Update(ids, gradients.data(), {updates, 1}, &snapshot_);
  }

  ShardSnapshot snapshot_;
};

// rule, max_rows, seed
class RowTableHistoryTest : public RowTableTest,
                            public testing::WithParamInterface<
                                std::tuple<std::string, int64_t, int>> {};

TEST_P(RowTableHistoryTest, RandomHistory_IsThatOfAPlainTable) {
  const auto [rule, max_rows, seed] = GetParam();
  RecordProperty("seed", seed);
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  TableDef def = MakeTable(5, rule, max_rows);
  ScheduleSpec* const schedule = def.mutable_optimizer()->mutable_schedule();
  schedule->set_name("exponential");
  schedule->set_decay_steps(30);
  schedule->set_decay_rate(0.5);
  RowTable table = Make(def);
  PlainTable plain(def);
  std::vector<int64_t> pool = {0, -1, INT64_MIN, INT64_MAX};
  while (pool.size() < 5000) pool.push_back(static_cast<int64_t>(random()));
  int64_t updates = 0;
  const auto push = [&] {
    std::set<int64_t> drawn;
    while (drawn.size() < 200) drawn.insert(pool[random() % pool.size()]);
    const std::vector<int64_t> ids = Sorted(table, drawn);
    std::vector<float> gradients;
    for (size_t i = 0; i < ids.size() * 5; ++i) {
      gradients.push_back(static_cast<float>(random() % 2001) / 1000 - 1);
    }
    // Steps of two parts, in the wrong order.
    const size_t half = ids.size() / 2;
    for (const auto& [begin, end] :
         {std::pair(half, ids.size()), std::pair(size_t{0}, half)}) {
      const std::vector<int64_t> part(ids.begin() + begin, ids.begin() + end);
      Push(&table, part,
           std::vector<float>(gradients.begin() + begin * 5,
                              gradients.begin() + end * 5),
           updates);
      for (size_t i = begin; i < end; ++i) {
        plain.Update(ids[i],
                     {gradients.begin() + i * 5, gradients.begin() + i * 5 + 5},
                     updates);
      }
    }
    ++updates;
  };
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 10; ++i) push();
    std::vector<float> values(pool.size() * 5);
    table.Read(pool, values.data());
    for (size_t i = 0; i < pool.size(); ++i) {
      ASSERT_EQ(plain.Values(pool[i]),
                std::vector<float>(values.begin() + i * 5,
                                   values.begin() + i * 5 + 5));
    }
    ASSERT_EQ(table.rows(), plain.rows().size());
    ASSERT_EQ(table.evicted_rows(), plain.evicted());
    snapshot_.Begin(round + 1, kMuch);
    table.BeginSnapshot(snapshot_);
    const PlainTable::Rows then = plain.rows();
    const PlainTable::Rows read =
        ReadAll(&table, &snapshot_, 200 + random() % 900, push);
    EXPECT_TRUE(read == then);
    snapshot_.End(round + 1);
  }
  EXPECT_EQ(max_rows > 0, plain.evicted() > 0);
}

INSTANTIATE_TEST_SUITE_P(Histories, RowTableHistoryTest,
                         testing::Combine(testing::Values("adam", "ftrl"),
                                          testing::Values(0, 1,
                                                          3 * kLogicalShards),
                                          testing::Values(1, 2)));

TEST_F(RowTableTest, APull_CreatesNothing) {
  RowTable table = Make(MakeTable(4));
  std::vector<float> values(12);
  table.Read({5, 6, 5}, values.data());
  EXPECT_EQ(table.rows(), 0);
  EXPECT_TRUE(
      std::equal(values.begin(), values.begin() + 4, values.begin() + 8));
  EXPECT_NE(values[0], values[4]);
}

TEST_F(RowTableTest, LoadedRows_AreThoseThatWereRead) {
  const TableDef def = MakeTable(3, "adam");
  RowTable table = Make(def);
  const std::vector<int64_t> ids = Sorted(table, {1, 2, 3, 40});
  for (int64_t step = 0; step < 3; ++step) {
    Push(&table, ids, std::vector<float>(12, 0.5F), step);
  }
  snapshot_.Begin(1, kMuch);
  table.BeginSnapshot(snapshot_);
  const auto rows = ReadAll(&table, &snapshot_, 2, [] {});
  snapshot_.End(1);
  RowTable loaded = Make(def);
  ASSERT_TRUE(loaded.Reserve(4));
  for (const auto& [key, row] : rows) {
    loaded.Load(
        key.second, row.updates, 3,
        {row.floats.data(), row.floats.data() + 3, row.floats.data() + 6},
        &snapshot_);
  }
  for (int64_t step = 3; step < 6; ++step) {
    for (RowTable* const each : {&table, &loaded}) {
      Push(each, ids, std::vector<float>(12, -0.25F), step);
    }
  }
  std::vector<float> wanted(12), found(12);
  table.Read(ids, wanted.data());
  loaded.Read(ids, found.data());
  EXPECT_EQ(found, wanted);
}

TEST_F(RowTableTest, Memory_IsBoundedByTheRows) {
  RowTable table = Make(MakeTable(8));
  std::vector<float> gradients(4096 * 8, 1.0F);
  int64_t next = 0;
  for (const int64_t rows : {10'000, 30'000, 100'000, 250'000}) {
    while (table.rows() < rows) {
      std::set<int64_t> ids;
      for (int i = 0; i < 1000; ++i) ids.insert(next++);
      Push(&table, Sorted(table, ids), gradients, next);
    }
    EXPECT_LE(table.bytes(), 128 * table.rows()) << table.rows();
  }
}

TEST_F(RowTableTest, ASnapshotThatHasNoRoom_IsGivenUp) {
  RowTable table = Make(MakeTable(2));
  const std::vector<int64_t> ids = Sorted(table, {1, 2, 3});
  Push(&table, ids, std::vector<float>(6, 1.0F), 0);
  snapshot_.Begin(1, 100);
  table.BeginSnapshot(snapshot_);
  Push(&table, {ids[0]}, {1, 1}, 1);
  EXPECT_THAT(snapshot_.Check("read", 1), IsOk());
  Push(&table, {ids[1]}, {1, 1}, 1);
  EXPECT_THAT(snapshot_.Check("read", 1), StatusIs(absl::StatusCode::kAborted));
}

TEST_F(RowTableTest, CopiesThatWerePassed_GiveTheirRoomBack) {
  RowTable table = Make(MakeTable(2));
  const std::vector<int64_t> ids = Sorted(table, {1, 2, 3});
  Push(&table, ids, std::vector<float>(6, 1.0F), 0);
  snapshot_.Begin(1, kMuch);
  table.BeginSnapshot(snapshot_);
  Push(&table, ids, std::vector<float>(6, 1.0F), 1);
  const int64_t copied = snapshot_.copied_bytes();
  EXPECT_GT(copied, 0);
  RowCursor cursor;
  cursor.set_logical_shard(table.hash().LogicalShardOf(ids[1]));
  EXPECT_EQ(table.ReadSnapshot(cursor, 10, &snapshot_).ids.size(), 2);
  EXPECT_EQ(snapshot_.copied_bytes(), copied / 3 * 2);
  // Nobody will read it any more.
  Push(&table, {ids[0]}, {1, 1}, 2);
  EXPECT_EQ(snapshot_.copied_bytes(), copied / 3 * 2);
}

}  // namespace
}  // namespace muster
