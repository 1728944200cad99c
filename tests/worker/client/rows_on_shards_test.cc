// Rows of sparse tables on shards as they run in production, over each link.
#include <atomic>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/forwarding_parameter_link.h"
#include "tests/testing/linked_shard.h"
#include "tests/testing/lossy_parameter_link.h"
#include "tests/testing/status_matchers.h"
#include "worker/client/client.h"

namespace muster {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

OptimizerSpec Sgd() {
  OptimizerSpec optimizer;
  optimizer.set_name("sgd");
  Attr* const rate = optimizer.add_attr();
  rate->set_name("learning_rate");
  rate->set_f(1);
  return optimizer;
}

// Counts the bytes of ids and rows both ways, beside the messages' headers.
class CountingLink : public ForwardingParameterLink {
 public:
  CountingLink(ParameterLink* link, std::atomic<int64_t>* bytes)
      : ForwardingParameterLink(link), bytes_(*bytes) {}

  void PullRows(Frame<PullRowsRequest> request, absl::Time deadline,
                ReplyCallback<Frame<PullRowsReply>> done) override {
    bytes_ += request.data.size();
    ForwardingParameterLink::PullRows(
        std::move(request), deadline,
        [this, done = std::move(done)](auto reply) {
          if (reply.ok()) bytes_ += reply->data.size();
          done(std::move(reply));
        });
  }
  void PushTo(std::shared_ptr<ValuePlace> place, Frame<PushPart> request,
              absl::Time deadline,
              ReplyCallback<Frame<PushReply>> done) override {
    bytes_ += request.data.size();
    ForwardingParameterLink::PushTo(std::move(place), std::move(request),
                                    deadline, std::move(done));
  }

 private:
  std::atomic<int64_t>& bytes_;
};

class RowsOnShardsTest : public testing::TestWithParam<LinkKind> {
 protected:
  static constexpr int kPs = 3;

  RowsOnShardsTest() {
    for (int ps = 0; ps < kPs; ++ps) {
      ShardServer::Options shard;
      shard.shard.incarnation = 11 + ps;
      shard.shard.ps_index = ps;
      shard.clock = &clock_;
      shards_.push_back(std::make_unique<LinkedShard>(GetParam(), shard));
      options_.ps_addresses.push_back(absl::StrCat("localhost:", ps + 1));
    }
    options_.optimizer = Sgd();
    options_.tables = {{"user", 3}, {"item", 200}};
    for (Client::Table& table : options_.tables) table.initial = ZEROS;
    options_.max_wait = absl::Seconds(60);
  }

  std::unique_ptr<Client> Create(double loss) {
    std::vector<std::unique_ptr<ParameterLink>> links;
    for (const auto& shard : shards_) {
      LossyParameterLink::Options lossy;
      lossy.seed = 20261129;
      lossy.lose_request = lossy.lose_reply = lossy.repeat = loss;
      links.push_back(
          std::make_unique<LossyParameterLink>(&shard->link(), lossy));
    }
    auto model = Client::Create(options_, {{"w", {2}}}, std::move(links));
    EXPECT_THAT(model, IsOk());
    return *std::move(model);
  }

  MonotonicClock clock_;
  std::vector<std::unique_ptr<LinkedShard>> shards_;
  Client::Options options_;
  std::vector<float> w_ = {0, 0};
};

TEST_P(RowsOnShardsTest, StepsOfTensorsAndRows_AreAppliedOnceOverLossyLinks) {
  const auto model = Create(/*loss=*/0.1);
  ASSERT_THAT(model->Initialize({w_}), IsOk());
  ASSERT_THAT(model->Pull({absl::MakeSpan(w_)}), IsOk());
  // Several parts for each ps task: 3,000 rows of 808 bytes.
  std::vector<int64_t> items;
  std::mt19937_64 random(20261129);
  for (int i = 0; i < 3000; ++i) {
    items.push_back(static_cast<int64_t>(random()));
  }
  const std::vector<int64_t> users = {1, -1, 1};
  const std::vector<float> item_diffs(items.size() * 200, 1);
  const std::vector<float> user_diffs(users.size() * 3, 1);
  const std::vector<float> diff = {1, 1};
  constexpr int kSteps = 5;
  for (int step = 1; step <= kSteps; ++step) {
    std::vector<float> rows(users.size() * 3);
    ASSERT_THAT(model->PullRows(0, users, absl::MakeSpan(rows)), IsOk());
    EXPECT_EQ(rows[0], -2.0f * (step - 1));
    const auto pushed =
        model->PushPull({diff}, {absl::MakeSpan(w_)},
                        {{0, users, user_diffs}, {1, items, item_diffs}});
    ASSERT_THAT(pushed, IsOk());
    EXPECT_EQ(pushed->max_staleness, 0);
    EXPECT_THAT(w_, Each(-step));
  }
  std::vector<float> rows(users.size() * 3);
  ASSERT_THAT(model->PullRows(0, users, absl::MakeSpan(rows)), IsOk());
  EXPECT_THAT(rows, ElementsAre(-10, -10, -10, -5, -5, -5, -10, -10, -10));
  std::vector<float> values(items.size() * 200);
  ASSERT_THAT(model->PullRows(1, items, absl::MakeSpan(values)), IsOk());
  EXPECT_THAT(values, Each(-kSteps));
}

TEST_P(RowsOnShardsTest, RowsAlone_AndAStepWithoutRows) {
  const auto model = Create(/*loss=*/0);
  ASSERT_THAT(model->Initialize({w_}), IsOk());
  ASSERT_THAT(model->Pull({absl::MakeSpan(w_)}), IsOk());
  const std::vector<int64_t> users = {7};
  ASSERT_THAT(model->PushRows(0, users, {1, 2, 3}), IsOk());
  ASSERT_THAT(model->Push({{1, 1}}), IsOk());
  std::vector<float> rows(3);
  ASSERT_THAT(model->PullRows(0, users, absl::MakeSpan(rows)), IsOk());
  EXPECT_THAT(rows, ElementsAre(-1, -2, -3));
  ASSERT_THAT(model->Pull({absl::MakeSpan(w_)}), IsOk());
  EXPECT_THAT(w_, Each(-1));
}

TEST_P(RowsOnShardsTest, AStep_CarriesEachDistinctRowOnceEachWay) {
  std::atomic<int64_t> bytes = 0;
  std::vector<std::unique_ptr<ParameterLink>> links;
  for (const auto& shard : shards_) {
    links.push_back(std::make_unique<CountingLink>(&shard->link(), &bytes));
  }
  auto model = Client::Create(options_, {{"w", {2}}}, std::move(links));
  ASSERT_THAT(model, IsOk());
  ASSERT_THAT((*model)->Initialize({w_}), IsOk());
  ASSERT_THAT((*model)->Pull({absl::MakeSpan(w_)}), IsOk());
  std::mt19937_64 random(20261129);
  std::geometric_distribution<int64_t> skewed(0.01);
  std::vector<int64_t> ids;
  for (int i = 0; i < 2000; ++i) ids.push_back(skewed(random));
  constexpr int64_t kDim = 200;
  const int64_t rows = std::set<int64_t>(ids.begin(), ids.end()).size();
  std::vector<float> values(ids.size() * kDim);
  bytes = 0;
  ASSERT_THAT((*model)->PullRows(1, ids, absl::MakeSpan(values)), IsOk());
  EXPECT_EQ(bytes, rows * (8 + 4 * kDim));
  bytes = 0;
  ASSERT_THAT((*model)->PushRows(1, ids, values), IsOk());
  EXPECT_EQ(bytes, rows * (8 + 4 * kDim));
}

TEST_P(RowsOnShardsTest, Initialize_EmptiesTheTables) {
  const auto model = Create(/*loss=*/0);
  std::vector<float> rows(3);
  const std::vector<int64_t> users = {7};
  for (int i = 0; i < 2; ++i) {
    ASSERT_THAT(model->Initialize({w_}), IsOk());
    ASSERT_THAT(model->Pull({absl::MakeSpan(w_)}), IsOk());
    ASSERT_THAT(model->PullRows(0, users, absl::MakeSpan(rows)), IsOk());
    EXPECT_THAT(rows, Each(0));
    ASSERT_THAT(model->PushRows(0, users, {1, 1, 1}), IsOk());
  }
}

INSTANTIATE_TEST_SUITE_P(Links, RowsOnShardsTest, testing::ValuesIn(kAllLinks),
                         [](const auto& link) { return NameOf(link.param); });

}  // namespace
}  // namespace muster
