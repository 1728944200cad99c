// A user's own model with sparse tables, on shards that add what is pushed.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/base/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/fake_parameter_link.h"
#include "tests/testing/status_matchers.h"
#include "worker/client/client.h"

namespace muster {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ClientRowsTest : public testing::Test {
 protected:
  enum { kUser, kItem };

  absl::StatusOr<std::unique_ptr<Client>> Create(
      const std::vector<Client::Tensor>& tensors) {
    Client::Options options;
    options.ps_addresses = {"localhost:1", "localhost:2"};
    options.optimizer.set_name("sgd");
    options.tables = tables_;
    std::vector<std::unique_ptr<ParameterLink>> links;
    for (int ps = 0; ps < 2; ++ps) {
      FakeShard::Faults faults;
      faults.seed = 20261129 + ps;
      faults.lost_requests = faults.lost_answers = faults.duplicates = 10;
      shards_[ps] = std::make_unique<FakeShard>(faults);
      links.push_back(std::make_unique<FakeParameterLink>(shards_[ps].get()));
    }
    // A Hello that is lost is said again.
    absl::StatusOr<std::unique_ptr<Client>> model =
        Client::Create(options, tensors, std::move(links));
    return model;
  }
  std::unique_ptr<Client> CreateOf(const std::vector<Client::Tensor>& tensors,
                                   absl::Span<const float> w) {
    auto model = Create(tensors);
    EXPECT_THAT(model, IsOk());
    if (tensors.empty()) {
      EXPECT_THAT((*model)->Initialize({}), IsOk());
      EXPECT_THAT((*model)->Pull({}), IsOk());
    } else {
      EXPECT_THAT((*model)->Initialize({w}), IsOk());
      EXPECT_THAT((*model)->Pull({absl::MakeSpan(w_)}), IsOk());
    }
    return *std::move(model);
  }
  std::vector<float> Pull(Client& model, int table,
                          const std::vector<int64_t>& ids) {
    std::vector<float> rows(ids.size() * tables_[table].dim, -100);
    EXPECT_THAT(model.PullRows(table, ids, absl::MakeSpan(rows)), IsOk());
    return rows;
  }

  std::vector<Client::Table> tables_ = {{"user", 2}, {"item", 1}};
  std::unique_ptr<FakeShard> shards_[2];
  std::vector<float> w_ = {0, 0};
};

TEST_F(ClientRowsTest, PushPull_HasTensorsAndRowsInOneStep) {
  const auto model = CreateOf({{"w", {2}}}, w_);
  const std::vector<int64_t> users = {4, -4, 77};
  const std::vector<int64_t> items = {4};
  const std::vector<float> diff(2, 1);
  const std::vector<float> user_diffs = {1, 2, 3, 4, 5, 6};
  const std::vector<float> item_diffs = {9};
  constexpr int kSteps = 20;
  for (int i = 0; i < kSteps; ++i) {
    EXPECT_THAT(Pull(*model, kItem, items), ElementsAre(9 * i));
    const auto pushed = model->PushPull(
        {diff}, {absl::MakeSpan(w_)},
        {{kItem, items, item_diffs}, {kUser, users, user_diffs}});
    ASSERT_THAT(pushed, IsOk());
    EXPECT_EQ(pushed->max_staleness, 0);
    EXPECT_THAT(w_, Each(i + 1));
  }
  EXPECT_EQ(model->step(), kSteps);
  EXPECT_THAT(Pull(*model, kUser, users),
              ElementsAre(20, 40, 60, 80, 100, 120));
}

TEST_F(ClientRowsTest, EqualIds_AreAddedUpAndPulledEachTime) {
  const auto model = CreateOf({{"w", {2}}}, w_);
  const std::vector<int64_t> ids = {8, 3, 8};
  const std::vector<float> diffs = {1, 2, 10, 20, 100, 200};
  ASSERT_THAT(model->PushRows(kUser, ids, diffs), IsOk());
  EXPECT_THAT(Pull(*model, kUser, ids),
              ElementsAre(101, 202, 10, 20, 101, 202));
  ASSERT_THAT(model->Pull({absl::MakeSpan(w_)}), IsOk());
  EXPECT_THAT(w_, Each(0)) << "the step was of rows alone";
}

TEST_F(ClientRowsTest, AModelOfTablesAlone) {
  const auto model = CreateOf({}, {});
  const std::vector<int64_t> ids = {8, 3};
  for (int i = 0; i < 3; ++i) {
    EXPECT_THAT(Pull(*model, kItem, ids), Each(i));
    const std::vector<float> ones = {1, 1};
    ASSERT_THAT(model->PushRows(kItem, ids, ones), IsOk());
  }
}

TEST_F(ClientRowsTest, RowsThatCannotBe_AreRefusedByName) {
  const auto model = CreateOf({{"w", {2}}}, w_);
  const std::vector<int64_t> ids = {8, 3};
  std::vector<float> rows(3);
  EXPECT_THAT(model->PullRows(kUser, ids, absl::MakeSpan(rows)).message(),
              HasSubstr("'user': 2 ids and 3 values; wanted 2"));
  EXPECT_THAT(model->PullRows(2, ids, absl::MakeSpan(rows)).message(),
              HasSubstr("table 2"));
  EXPECT_THAT(model->PushRows(kUser, ids, rows).status().message(),
              HasSubstr("'user': 2 ids and 3 values"));
  EXPECT_EQ(model->step(), 0);
}

TEST_F(ClientRowsTest, ATableWithATensorsName_IsRefused) {
  tables_[1].name = "w";
  EXPECT_THAT(Create({{"w", {2}}}).status().message(),
              HasSubstr("table 'w': a tensor or another table has this name"));
  tables_[1] = {"item", 0};
  EXPECT_THAT(Create({{"w", {2}}}).status().message(),
              HasSubstr("table 'item': dim is 0"));
}

}  // namespace
}  // namespace muster
