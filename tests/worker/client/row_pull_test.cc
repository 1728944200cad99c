#include "worker/client/row_pull.h"

#include <vector>

#include "common/rpc/error_reason.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/worker/client/row_model.h"

namespace muster {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class RowPullTest : public RowModel {
 protected:
  // Rows of "user" are (id, id + 1, id + 2), those of "item" (-id, id).
  void Load(int num_ps, const std::vector<int64_t>& ids,
            const FakeShard::Faults& faults = {}) {
    Connect(num_ps, faults);
    std::vector<float> user;
    std::vector<float> item;
    for (const int64_t id : ids) {
      const auto value = static_cast<float>(id);
      user.insert(user.end(), {value, value + 1, value + 2});
      item.insert(item.end(), {-value, value});
    }
    const std::vector<int64_t> updates(ids.size(), 1);
    ASSERT_THAT(client_->chief().LoadRows({kUser, ids, updates, {user}}),
                IsOk());
    ASSERT_THAT(client_->chief().LoadRows({kItem, ids, updates, {item}}),
                IsOk());
  }
};

TEST_F(RowPullTest, TablesOfManyPs_ComeInTheOrderAsked) {
  const std::vector<int64_t> ids = {40, -7, 3, 12, 1000000007, 5};
  FakeShard::Faults faults;
  faults.seed = 20261129;
  faults.lost_requests = faults.lost_answers = faults.duplicates = 20;
  Load(3, ids, faults);
  for (int i = 0; i < 20; ++i) {
    std::vector<float> user(ids.size() * 3);
    std::vector<float> item(ids.size() * 2);
    const auto versions =
        client_->PullRows({{kItem, ids, absl::MakeSpan(item)},
                           {kUser, ids, absl::MakeSpan(user)}});
    ASSERT_THAT(versions, IsOk());
    EXPECT_THAT(*versions, Each(0));
    for (size_t row = 0; row < ids.size(); ++row) {
      const auto value = static_cast<float>(ids[row]);
      EXPECT_EQ(user[3 * row], value);
      EXPECT_EQ(user[3 * row + 2], value + 2);
      EXPECT_EQ(item[2 * row], -value);
    }
  }
}

TEST_F(RowPullTest, ARepeatedId_HasItsValueEachTime) {
  Load(2, {4, 9});
  const std::vector<int64_t> ids = {9, 4, 9, 4, 4};
  std::vector<float> values(10, -100);
  ASSERT_THAT(client_->PullRows({{kItem, ids, absl::MakeSpan(values)}}),
              IsOk());
  EXPECT_THAT(values, ElementsAre(-9, 9, -4, 4, -9, 9, -4, 4, -4, 4));
  // Two rows of 8 + 8 bytes.
  EXPECT_EQ(client_->pulled_row_bytes(), 32);
}

TEST_F(RowPullTest, APsWithoutTheRows_IsNotAsked) {
  Load(2, {});
  const std::vector<int64_t> ids = IdsOn(kUser, 1, 3);
  std::vector<float> values(9, -100);
  const auto versions =
      client_->PullRows({{kUser, ids, absl::MakeSpan(values)}});
  ASSERT_THAT(versions, IsOk());
  EXPECT_THAT(*versions, ElementsAre(kNotAsked, 0));
  EXPECT_EQ(shards_[0]->row_pulls(), 0);
  // Two rows fit into a part.
  EXPECT_EQ(shards_[1]->row_pulls(), 2);
  EXPECT_THAT(values, Each(0));
}

TEST_F(RowPullTest, TheToken_GoesWithThem) {
  Load(1, {1});
  StepToken token;
  token.set_round(8);
  std::vector<float> values(3);
  const std::vector<int64_t> ids = {1};
  ASSERT_THAT(client_->PullRows({{kUser, ids, absl::MakeSpan(values)}}, token),
              IsOk());
  EXPECT_EQ(shards_[0]->round(), 8);
}

// Every token has to reach every shard.
TEST_F(RowPullTest, APullOfTensors_AsksAPsWithoutAny) {
  Connect(2);
  const int64_t before = shards_[1]->pulls();
  StepToken token;
  token.set_round(3);
  ASSERT_THAT(client_->PullAndWait({MutableViewOf(absl::MakeSpan(w_))}, token),
              IsOk());
  EXPECT_EQ(shards_[1]->pulls(), before + 1);
  EXPECT_EQ(shards_[1]->round(), 3);
}

TEST_F(RowPullTest, AFence_IsAborted) {
  Load(2, {1});
  shards_[1]->FailWith(FencedError("epoch 1"));
  const std::vector<int64_t> ids = IdsOn(kUser, 1, 1);
  std::vector<float> values(3);
  EXPECT_THAT(
      client_->PullRows({{kUser, ids, absl::MakeSpan(values)}}),
      StatusIs(absl::StatusCode::kAborted,
               AllOf(HasSubstr("pull of rows"), HasSubstr("/job:ps/task:1"))));
}

TEST_F(RowPullTest, OfAnotherSize_IsRefused) {
  Load(1, {1});
  std::vector<float> values(4);
  const std::vector<int64_t> ids = {1};
  EXPECT_THAT(
      client_->PullRows({{kUser, ids, absl::MakeSpan(values)}}),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("'user'")));
}

TEST(RowVersionsTest, OfSeveralPulls_TheOldestStays) {
  std::vector<int64_t> all;
  AddRowVersions({5, kNotAsked, kNotAsked}, &all);
  AddRowVersions({6, 3, kNotAsked}, &all);
  EXPECT_THAT(all, ElementsAre(5, 3, kNotAsked));
  AddRowVersions({4, 4, kNotAsked}, &all);
  EXPECT_THAT(all, ElementsAre(4, 3, kNotAsked));
}

}  // namespace
}  // namespace muster
