#include "worker/client/pushed_rows.h"

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "common/rpc/protocol.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/worker/client/row_model.h"

namespace muster {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class PushedRowsTest : public RowModel {
 protected:
  using Result = absl::StatusOr<PushResult>;

  // Ones to "w", `value` to each of these rows.
  Result Push(int64_t step, const std::vector<int64_t>& users,
              const std::vector<int64_t>& items, float value = 1,
              absl::Span<const int64_t> versions = {}) {
    const std::vector<float> w(4, 1);
    const std::vector<float> user(users.size() * 3, value);
    const std::vector<float> item(items.size() * 2, value);
    const std::vector<RowGradients> rows = {{kItem, items, item},
                                            {kUser, users, user}};
    return client_->PushAndWait(step, {View(w)}, /*round=*/0, /*into=*/{},
                                {rows, versions});
  }
};

TEST_F(PushedRowsTest, StepsOfTensorsAndRows_AreAppliedOnceOverALossyNetwork) {
  FakeShard::Faults faults;
  faults.seed = 20261129;
  faults.lost_requests = faults.lost_answers = faults.duplicates = 15;
  Connect(3, faults);
  const std::vector<int64_t> users = {3, -1, 99, 1234567, 5, 8, 13};
  const std::vector<int64_t> items = {3, 4, 77};
  constexpr int kSteps = 20;
  for (int step = 1; step <= kSteps; ++step) {
    ASSERT_THAT(PullTensor(), IsOk());
    const Result pushed = Push(step, users, items);
    ASSERT_THAT(pushed, IsOk());
    EXPECT_EQ(pushed->sent_bytes, 4 * 4 + 7 * (8 + 12) + 3 * (8 + 8));
  }
  for (const int64_t id : users) {
    EXPECT_THAT(RowOnShard(kUser, id), ElementsAre(kSteps, kSteps, kSteps));
  }
  for (const int64_t id : items) {
    EXPECT_THAT(RowOnShard(kItem, id), ElementsAre(kSteps, kSteps));
  }
  ASSERT_THAT(PullTensor(), IsOk());
  EXPECT_THAT(w_, Each(kSteps));
  int64_t duplicates = 0;
  for (const auto& shard : shards_) duplicates += shard->duplicates();
  EXPECT_GT(duplicates, 0);
}

TEST_F(PushedRowsTest, RowPartsAreNumberedBehindThoseOfTensors) {
  Connect(2);
  const std::vector<int64_t> on_first = IdsOn(kUser, 0, 5);
  ASSERT_THAT(Push(1, on_first, {}), IsOk());
  // "w", and two rows a part.
  const std::vector<PushPart> pushes = links_[0]->pushes();
  ASSERT_THAT(pushes, SizeIs(4));
  for (size_t i = 0; i < pushes.size(); ++i) {
    EXPECT_EQ(pushes[i].part(), i);
    EXPECT_EQ(pushes[i].parts(), 4);
    EXPECT_EQ(pushes[i].is_rows(), i > 0);
    EXPECT_EQ(pushes[i].slices().empty(), i > 0);
    EXPECT_EQ(pushes[i].rows_size(), i > 0 ? 1 : 0);
  }
  EXPECT_EQ(pushes[3].rows(0).table(), "user");
  EXPECT_EQ(pushes[3].rows(0).count(), 1);
}

TEST_F(PushedRowsTest, APsWithoutRows_GetsAnEmptyPart) {
  Connect(3);
  ASSERT_THAT(Push(1, {}, {}), IsOk());
  for (int ps = 0; ps < 3; ++ps) {
    const std::vector<PushPart> pushes = links_[ps]->pushes();
    ASSERT_THAT(pushes, SizeIs(ps == 0 ? 2 : 1));
    EXPECT_TRUE(pushes.back().is_rows());
    EXPECT_EQ(pushes.back().rows_size(), 0);
    EXPECT_EQ(pushes.back().parts(), ps == 0 ? 2 : 1);
    EXPECT_EQ(pushes.back().part(), ps == 0 ? 1 : 0);
  }
}

TEST_F(PushedRowsTest, APartThatIsSentAgain_HasTheSameIdentity) {
  options_.transfer.give_up_after = absl::ZeroDuration();
  Connect(2);
  const std::vector<int64_t> ids = IdsOn(kUser, 1, 4);
  shards_[1]->AnswerWith(absl::UnavailableError("connection reset"));
  const std::vector<float> w(4, 1);
  const std::vector<float> gradients(ids.size() * 3, 1);
  const std::vector<RowGradients> rows = {{kUser, ids, gradients}};
  auto push = client_->BeginPush(1, /*round=*/0, {View(w)}, /*into=*/{},
                                 /*versions=*/nullptr, {rows, {}});
  ASSERT_THAT(push, IsOk());
  EXPECT_THAT((*push)->Finish(), StatusIs(absl::StatusCode::kUnavailable));
  ASSERT_TRUE((*push)->may_resume());
  shards_[1]->AnswerWith(absl::OkStatus());
  client_->Resume(push->get());
  ASSERT_THAT((*push)->Finish(), IsOk());
  std::map<int32_t, std::string> sent;
  for (const PushPart& part : links_[1]->pushes()) {
    const std::string bytes = part.SerializeAsString();
    EXPECT_EQ(sent.emplace(part.part(), bytes).first->second, bytes);
  }
  EXPECT_THAT(sent, SizeIs(2));
  EXPECT_GT(links_[1]->pushes().size(), sent.size());
  for (const int64_t id : ids) {
    EXPECT_THAT(RowOnShard(kUser, id), ElementsAre(1, 1, 1));
  }
  // "w" was acknowledged the first time.
  EXPECT_THAT(links_[0]->pushes(), SizeIs(2));
}

TEST_F(PushedRowsTest, RowsAreAsOldAsTheyWerePulled_OrElseAsTheTensors) {
  Connect(2);
  for (int step = 1; step <= 3; ++step) ASSERT_THAT(Push(step, {}, {}), IsOk());
  const std::vector<int64_t> ids = IdsOn(kUser, 1, 1);
  std::vector<float> values(3);
  const auto versions =
      client_->PullRows({{kUser, ids, absl::MakeSpan(values)}});
  ASSERT_THAT(versions, IsOk());
  EXPECT_THAT(*versions, ElementsAre(kNotAsked, 3));
  const Result pushed = Push(4, ids, {}, 1, *versions);
  ASSERT_THAT(pushed, IsOk());
  // The tensors' are those of Connect.
  EXPECT_THAT(pushed->pulled_versions, ElementsAre(0, 3));
  EXPECT_EQ(links_[0]->pushes().back().pulled_version(), 0);
  EXPECT_EQ(links_[1]->pushes().back().pulled_version(), 3);
  // Two parts of the first shard are of 3 updates ago, one of now.
  EXPECT_EQ(pushed->max_staleness, 3);
  EXPECT_DOUBLE_EQ(pushed->mean_staleness, 2);
}

TEST_F(PushedRowsTest, WithNewValues_APsWithoutTensorsTellsItsVersion) {
  Connect(2);
  const std::vector<float> w(4, 1);
  for (int step = 1; step <= 3; ++step) {
    const auto pushed = client_->PushAndWait(
        step, {View(w)}, /*round=*/0, {MutableViewOf(absl::MakeSpan(w_))});
    ASSERT_THAT(pushed, IsOk());
    EXPECT_EQ(pushed->max_staleness, 0);
    EXPECT_THAT(w_, Each(step));
  }
  EXPECT_FALSE(links_[1]->pushes().back().wants_values());
}

TEST_F(PushedRowsTest, RowsAlone_ChangeNoTensor) {
  Connect(2);
  const std::vector<int64_t> ids = {1, 2, 3, 4};
  const std::vector<float> gradients(ids.size() * 2, 2);
  const std::vector<RowGradients> rows = {{kItem, ids, gradients}};
  const auto pushed = client_->PushAndWait(1, {}, /*round=*/0, {}, {rows, {}});
  ASSERT_THAT(pushed, IsOk());
  EXPECT_EQ(pushed->sent_bytes, 4 * 16);
  for (const int64_t id : ids) {
    EXPECT_THAT(RowOnShard(kItem, id), ElementsAre(2, 2));
  }
  ASSERT_THAT(PullTensor(), IsOk());
  EXPECT_THAT(w_, Each(0));
  for (const RecordingLink* link : links_) {
    const std::vector<PushPart> pushes = link->pushes();
    for (size_t i = 0; i < pushes.size(); ++i) {
      EXPECT_EQ(pushes[i].part(), i);
      EXPECT_EQ(pushes[i].parts(), pushes.size());
    }
  }
  // The next step has both.
  ASSERT_THAT(Push(2, {}, ids), IsOk());
  EXPECT_THAT(RowOnShard(kItem, 1), ElementsAre(3, 3));
}

TEST_F(PushedRowsTest, GivenUpBeforeItIsWhole_NoRowHasLeft) {
  Connect(1);
  const std::vector<float> w(4, 1);
  const std::vector<int64_t> ids = {1};
  const std::vector<float> gradients(3, 1);
  const std::vector<RowGradients> rows = {{kUser, ids, gradients}};
  auto push = client_->BeginPush(1, /*round=*/0, {View(w)}, /*into=*/{},
                                 /*versions=*/nullptr, {rows, {}});
  ASSERT_THAT(push, IsOk());
  (*push)->Release(0);
  push->reset();
  EXPECT_THAT(RowOnShard(kUser, 1), IsEmpty());
}

TEST_F(PushedRowsTest, ARepeatedId_OrAnotherSize_IsRefused) {
  Connect(1);
  EXPECT_THAT(Push(1, {4, 4}, {}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("push of step 1"), HasSubstr("id 4"))));
  const std::vector<int64_t> ids = {1};
  const std::vector<float> gradients(2, 1);
  const std::vector<RowGradients> rows = {{kUser, ids, gradients}};
  const std::vector<float> w(4, 1);
  EXPECT_THAT(client_->PushAndWait(1, {View(w)}, 0, {}, {rows, {}}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("'user'"), HasSubstr("wanted 3"))));
}

TEST_F(PushedRowsTest, AModelWithoutTables_PushesNoPartOfRows) {
  tables_.clear();
  Connect(2);
  const std::vector<float> w(4, 1);
  ASSERT_THAT(client_->PushAndWait(1, {View(w)}), IsOk());
  EXPECT_THAT(links_[0]->pushes(), SizeIs(1));
  EXPECT_THAT(links_[1]->pushes(), IsEmpty());
}

TEST_F(PushedRowsTest, InPlace_IsRefusedByName) {
  Connect(1);
  EXPECT_THAT(
      client_->MapParameters(InPlaceOrder::kByRound),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("'user'")));
}

}  // namespace
}  // namespace muster
