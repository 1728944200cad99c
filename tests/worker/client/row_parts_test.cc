#include "worker/client/row_parts.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/tensor/row_hash.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();
constexpr int64_t kMost = std::numeric_limits<int64_t>::max();

ClientModel MakeModel(int num_ps, int64_t part_bytes) {
  ClientModel model;
  model.fences.resize(num_ps);
  model.part_bytes.assign(num_ps, part_bytes);
  for (const auto& [name, dim] : {std::pair("a", 2), std::pair("b", 5)}) {
    TableDef& table = model.tables.emplace_back();
    table.set_name(name);
    table.set_dim(dim);
  }
  return model;
}

std::vector<int64_t> SomeIds(size_t count) {
  constexpr uint32_t kSeed = 20261129;
  std::mt19937_64 random(kSeed);
  std::vector<int64_t> ids = {kLeast, -1, 0, kMost};
  while (ids.size() < count) ids.push_back(static_cast<int64_t>(random()));
  std::shuffle(ids.begin(), ids.end(), random);
  return ids;
}

// Of all parts of a ps, in their order: (input, logical shard, id).
std::vector<std::tuple<size_t, int, int64_t>> OrderOn(const ClientModel& model,
                                                      const RowParts& parts,
                                                      int ps) {
  std::vector<std::tuple<size_t, int, int64_t>> order;
  for (const RowParts::Part& part : parts.of(ps)) {
    for (const RowParts::Run& run : part.runs) {
      const RowHash hash(model.tables[run.input].name());
      for (const RowParts::Row& row : parts.rows(run)) {
        order.emplace_back(run.input, hash.LogicalShardOf(row.id), row.id);
      }
    }
  }
  return order;
}

TEST(RowPartsTest, EachPsHasItsRowsByTableLogicalShardAndId) {
  const ClientModel model = MakeModel(3, 1000);
  const std::vector<int64_t> a = SomeIds(900);
  const std::vector<int64_t> b = SomeIds(500);
  const auto parts = RowParts::Cut(model, {{0, a}, {1, b}}, {});
  ASSERT_THAT(parts, IsOk());
  size_t rows = 0;
  for (int ps = 0; ps < 3; ++ps) {
    const auto order = OrderOn(model, *parts, ps);
    EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
    for (const auto& [input, shard, id] : order) {
      EXPECT_EQ(PsOfLogicalShard(shard, 3), ps) << id;
    }
    rows += order.size();
  }
  EXPECT_EQ(rows, a.size() + b.size());
}

TEST(RowPartsTest, TheOrderTheyAreGivenInChangesNoPart) {
  const ClientModel model = MakeModel(2, 100);
  std::vector<int64_t> ids = SomeIds(50);
  const auto parts = RowParts::Cut(model, {{0, ids}, {1, ids}}, {});
  ASSERT_THAT(parts, IsOk());
  std::reverse(ids.begin(), ids.end());
  const auto others = RowParts::Cut(model, {{1, ids}, {0, ids}}, {});
  ASSERT_THAT(others, IsOk());
  EXPECT_EQ(parts->PartBytes(), others->PartBytes());
  for (int ps = 0; ps < 2; ++ps) {
    for (size_t i = 0; i < parts->of(ps).size(); ++i) {
      EXPECT_EQ(parts->DataOf(parts->of(ps)[i]),
                others->DataOf(others->of(ps)[i]));
    }
  }
}

TEST(RowPartsTest, APartIsAsLongAsTheWayWants_OrOneRow) {
  const std::vector<int64_t> ids = SomeIds(10);
  // Rows of 8 + 2 * 4 bytes.
  for (const int64_t part_bytes : {1, 16, 47, 48}) {
    const ClientModel model = MakeModel(1, part_bytes);
    const auto parts = RowParts::Cut(model, {{0, ids}}, {});
    ASSERT_THAT(parts, IsOk());
    const size_t rows = std::max<size_t>(1, part_bytes / 16);
    EXPECT_THAT(parts->of(0), SizeIs((10 + rows - 1) / rows));
    EXPECT_EQ(parts->bytes(), 160);
  }
}

TEST(RowPartsTest, ARepeatedId_IsRefusedOrSentOnce) {
  const ClientModel model = MakeModel(1, 1 << 20);
  const std::vector<int64_t> ids = {7, -3, 7, 7};
  EXPECT_THAT(RowParts::Cut(model, {{0, ids}}, {}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("'a'"), HasSubstr("id 7"))));
  RowParts::Options options;
  options.may_repeat = true;
  const auto parts = RowParts::Cut(model, {{0, ids}}, options);
  ASSERT_THAT(parts, IsOk());
  ASSERT_THAT(parts->of(0), SizeIs(1));
  const RowParts::Part& part = parts->of(0).front();
  EXPECT_EQ(part.bytes, 2 * 16);
  const std::string data(parts->DataOf(part));
  ASSERT_EQ(data.size(), 2 * sizeof(int64_t));
  int64_t sent[2];
  std::memcpy(sent, data.data(), data.size());
  std::vector<float> values(8, -1);
  std::vector<float> answer;
  for (const int64_t id : sent) {
    answer.push_back(static_cast<float>(id));
    answer.push_back(static_cast<float>(id) + 0.5f);
  }
  const absl::Cord bytes(
      absl::string_view(reinterpret_cast<const char*>(answer.data()),
                        answer.size() * sizeof(float)));
  ASSERT_THAT(parts->Scatter(part, bytes, {{0, ids, absl::MakeSpan(values)}}),
              IsOk());
  EXPECT_THAT(values, ElementsAre(7, 7.5f, -3, -2.5f, 7, 7.5f, 7, 7.5f));
  EXPECT_THAT(parts->Scatter(part, absl::Cord("short"),
                             {{0, ids, absl::MakeSpan(values)}}),
              StatusIs(absl::StatusCode::kInternal));
}

TEST(RowPartsTest, WithEveryPs_OneWithoutRowsHasAnEmptyPart) {
  const ClientModel model = MakeModel(3, 100);
  RowParts::Options options;
  options.every_ps = true;
  const auto parts = RowParts::Cut(model, {}, options);
  ASSERT_THAT(parts, IsOk());
  EXPECT_EQ(parts->PartBytes(), std::vector<std::vector<int64_t>>(3, {0}));
  EXPECT_TRUE(parts->DataOf(parts->of(0).front()).empty());
}

TEST(RowPartsTest, MorePartsThanTheMost_BecomeLarger) {
  const ClientModel model = MakeModel(1, 16);
  const std::vector<int64_t> ids = SomeIds(10);
  RowParts::Options options;
  options.most_parts = {9};
  const auto parts = RowParts::Cut(model, {{0, ids}}, options);
  ASSERT_THAT(parts, IsOk());
  EXPECT_THAT(parts->of(0), SizeIs(1));
  options.most_parts = {0};
  EXPECT_THAT(
      RowParts::Cut(model, {{0, ids}}, options),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("fewer rows")));
}

TEST(RowPartsTest, ManyLongNames_AreInSeveralHeaders) {
  ClientModel model = MakeModel(1, 1 << 20);
  model.tables.clear();
  const std::vector<int64_t> ids = {1};
  std::vector<RowParts::Ids> inputs;
  for (int i = 0; i < 300; ++i) {
    model.tables.emplace_back().set_name(
        absl::StrCat(std::string(200, 'n'), i));
    model.tables.back().set_dim(1);
    inputs.push_back({i, ids});
  }
  const auto parts = RowParts::Cut(model, inputs, {});
  ASSERT_THAT(parts, IsOk());
  EXPECT_THAT(parts->of(0), SizeIs(Ge(2)));
  for (const RowParts::Part& part : parts->of(0)) {
    PushPart header;
    parts->FillRuns(part, header.mutable_rows());
    EXPECT_LE(header.ByteSizeLong(), 64 * 1024 / 2);
  }
}

TEST(RowPartsTest, ATableThatIsNotThere_OrTwice_IsRefused) {
  const ClientModel model = MakeModel(1, 100);
  const std::vector<int64_t> ids = {1};
  for (const int table : {-1, 2}) {
    EXPECT_THAT(RowParts::Cut(model, {{table, ids}}, {}),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr(absl::StrCat("table ", table))));
  }
  EXPECT_THAT(RowParts::Cut(model, {{1, ids}, {1, ids}}, {}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("'b'")));
}

}  // namespace
}  // namespace muster
