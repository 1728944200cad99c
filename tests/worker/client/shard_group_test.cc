#include "worker/client/shard_group.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/clock.h"
#include "common/rpc/call_table.h"
#include "common/rpc/error_reason.h"
#include "common/rpc/protocol.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/fake_clock.h"
#include "tests/testing/fake_parameter_link.h"
#include "tests/testing/hand_timers.h"
#include "tests/testing/reported_lines.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ShardGroupTest : public testing::Test {
 protected:
  ShardGroupTest() {
    ShardGroup::Options options;
    options.clock = &clock_;
    std::vector<std::unique_ptr<ParameterLink>> links;
    for (int i = 0; i < 2; ++i) {
      shards_.push_back(std::make_unique<FakeShard>(FakeShard::Faults{}));
      links.push_back(std::make_unique<FakeParameterLink>(shards_[i].get()));
      options.ps_names.push_back(absl::StrCat("/job:ps/task:", i));
    }
    group_ = std::make_unique<ShardGroup>(options, std::move(links));
    TensorDef tensor;
    tensor.set_name("tensor");
    tensor.set_dtype(FLOAT32);
    tensor.add_shape(3);
    EXPECT_THAT(group_->SetModel({tensor}, {{{1, 0, 3}}}), IsOk());
    group_->SetEpoch(1, {11, 12});
  }

  // How many shards a message to all has reached.
  absl::StatusOr<size_t> CallAll() {
    auto replies = group_->CallAll<SealReply>(
        [this](int shard, absl::Time deadline, ReplyCallback<SealReply> done) {
          SealRequest request;
          group_->model()->FillHead(shard, &request);
          incarnations_.push_back(request.fence().ps_incarnation());
          group_->link(shard).Call(kSealCall, request, deadline,
                                   std::move(done));
        });
    RETURN_IF_ERROR(replies.status());
    return replies->size();
  }

  const MonotonicClock clock_{};
  std::vector<std::unique_ptr<FakeShard>> shards_;
  std::unique_ptr<ShardGroup> group_;
  std::vector<uint64_t> incarnations_;
};

// A way whose best parts are half as large as others'.
class HalfPartsLink : public FakeParameterLink {
 public:
  using FakeParameterLink::FakeParameterLink;
  int64_t best_part_bytes() const override { return kMaxPartBytes / 2; }
};

TEST_F(ShardGroupTest, SmallerParts_HaveAWindowOfAsManyBytes) {
  ShardGroup::Options options;
  options.clock = &clock_;
  options.ps_names = {"/job:ps/task:0", "/job:ps/task:1"};
  std::vector<std::unique_ptr<ParameterLink>> links;
  links.push_back(std::make_unique<HalfPartsLink>(shards_[0].get()));
  links.push_back(std::make_unique<FakeParameterLink>(shards_[1].get()));
  ShardGroup group(options, std::move(links));
  std::vector<int> sent(2, 0);
  const std::vector<int64_t> parts(20, 1);
  const auto transfer = group.Start(
      {parts, parts}, ShardGroup::PartsAre::kOpen,
      [&](Transfer*, const TransferWindow::Send& send) { ++sent[send.shard]; },
      [](const absl::Status&, int64_t) {});
  EXPECT_THAT(sent, ElementsAre(8, 4));
  transfer->Cancel(absl::CancelledError("seen"));
}

TEST_F(ShardGroupTest, TellsWhetherTheFencesAreNew) {
  EXPECT_FALSE(group_->SetEpoch(1, {11, 12}));
  EXPECT_TRUE(group_->SetEpoch(1, {11, 13}));
  EXPECT_TRUE(group_->SetEpoch(2, {11, 13}));
}

TEST_F(ShardGroupTest, AModelThatWasReplacedIsNotInPlace) {
  const auto old = group_->model();
  group_->SetEpoch(2, {11, 12});
  EXPECT_THAT(group_->SetInPlace(old), StatusIs(absl::StatusCode::kAborted));
  EXPECT_FALSE(group_->model()->in_place);
  EXPECT_THAT(group_->SetInPlace(group_->model()), IsOk());
  EXPECT_TRUE(group_->model()->in_place);
}

TEST_F(ShardGroupTest, AMessageToAllHasTheFenceOfEach) {
  EXPECT_EQ(CallAll().value(), 2);
  EXPECT_EQ(incarnations_, std::vector<uint64_t>({11, 12}));
}

TEST_F(ShardGroupTest, TheRefusalOfOneShardEndsAMessageToAll) {
  shards_[1]->FailWith(absl::InvalidArgumentError("refused"));
  EXPECT_THAT(CallAll().status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("/job:ps/task:1: refused")));
}

TEST_F(ShardGroupTest, ClosingEndsATransferThatWaits) {
  absl::Status outcome;
  group_->Start(
      {{1}, {}}, ShardGroup::PartsAre::kClosed,
      [](Transfer*, const TransferWindow::Send&) { FAIL(); },
      [&](const absl::Status& end, int64_t) { outcome = end; });
  group_.reset();
  EXPECT_THAT(outcome, StatusIs(absl::StatusCode::kCancelled));
}

TEST(ShardGroupSilenceTest, LooksWhileThereAreTransfers) {
  FakeClock clock;
  HandTimers timers;
  ReportedLines lines;
  ShardGroup::Options options;
  options.clock = &clock;
  options.timers = &timers;
  options.ps_names = {"/job:ps/task:0"};
  options.reporter = lines.reporter();
  FakeShard shard(FakeShard::Faults{});
  std::vector<std::unique_ptr<ParameterLink>> links;
  links.push_back(std::make_unique<FakeParameterLink>(&shard));
  ShardGroup group(options, std::move(links));
  std::optional<TransferWindow::Send> sent;
  const auto transfer = group.Start(
      {{1}}, ShardGroup::PartsAre::kOpen,
      [&](Transfer*, const TransferWindow::Send& send) { sent = send; },
      [](const absl::Status&, int64_t) {});
  for (int second = 1; second <= 3; ++second) {
    clock.Advance(absl::Seconds(1));
    timers.RunUntil(clock.Now());
  }
  EXPECT_THAT(lines.lines(),
              ElementsAre(HasSubstr("waiting for /job:ps/task:0")));
  EXPECT_EQ(timers.size(), 1);
  ASSERT_TRUE(sent.has_value());
  transfer->Answer(*sent, absl::OkStatus());
  clock.Advance(absl::Seconds(1));
  timers.RunUntil(clock.Now());
  EXPECT_EQ(timers.size(), 0);
}

}  // namespace
}  // namespace muster
