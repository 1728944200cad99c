#include "worker/task/shared_training.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/config/text_format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "worker/task/worker_options.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

constexpr char kTraining[] = R"pb(
  optimizer {
    name: "sgd"
    attr { name: "learning_rate" f: 0.25 }
    schedule { name: "constant" }
  }
  replication { async {} }
  placement {
    strategy: "round_robin"
    partition { auto {} }
  }
)pb";

class SharedTrainingTest : public testing::Test {
 protected:
  SharedTrainingTest() {
    EXPECT_THAT(ParseTextProto(kTraining, "test", &options_.training), IsOk());
    options_.self.set_job("worker");
    options_.clock = SystemClock();
    TensorDef& tensor = tensors_.emplace_back();
    tensor.set_name("w");
    tensor.add_shape(3);
    tensor.add_shape(2);
    tensor.set_dtype(FLOAT32);
    shape_.batch_size = 4;
  }

  std::string Text() {
    absl::StatusOr<WorkerJob> job = WorkerJob::Create(options_);
    EXPECT_THAT(job, IsOk());
    if (!job.ok()) return "";
    const auto placed =
        PlacedTraining::Create(*std::move(job), {tensors_, shape_, 10});
    EXPECT_THAT(placed, IsOk());
    return placed.ok() ? SharedTrainingText(**placed, shape_, rows_) : "";
  }
  // Whether the text is another one once `change` was made.
  bool Differs(const std::function<void()>& change) {
    const std::string before = Text();
    change();
    return Text() != before;
  }

  WorkerOptions options_;
  std::vector<TensorDef> tensors_;
  BatchPlan shape_;
  std::string rows_ = "10";
};

TEST_F(SharedTrainingTest, HasALineForEachTensor) {
  EXPECT_THAT(Text(), HasSubstr("\ntensor: \"w\" [3,2]\n"));
  tensors_[0].set_kind(STATE);
  tensors_[0].set_decay(0.5);
  EXPECT_THAT(Text(), HasSubstr("\ntensor: \"w\" [3,2] state decay 0.5\n"));
}

TEST_F(SharedTrainingTest, OtherRuleReplicationPlacementOrRows_MakeAnother) {
  TrainingSpec& training = options_.training;
  EXPECT_TRUE(Differs(
      [&] { training.mutable_optimizer()->mutable_attr(0)->set_f(0.5); }));
  EXPECT_TRUE(Differs(
      [&] { training.mutable_placement()->set_strategy("greedy"); }));
  EXPECT_TRUE(Differs([&] { rows_ = "11"; }));
  EXPECT_TRUE(Differs([&] { training.mutable_replication()->mutable_sync(); }));
}

TEST_F(SharedTrainingTest, OtherModelInputSeedAndCodec_MakeTheSame) {
  TrainingSpec& training = options_.training;
  EXPECT_FALSE(Differs([&] {
    training.set_seed(4);
    training.mutable_model()->set_name("m");
    training.mutable_input()->set_type("csv");
    training.mutable_non_finite()->set_allow(true);
  }));
}

TEST_F(SharedTrainingTest, RowsOfAStep_AreAlikeInAMeanOfSeveralAlone) {
  EXPECT_FALSE(Differs([&] { shape_.batch_size = 5; }));
  options_.training.mutable_replication()->mutable_sync();
  EXPECT_THAT(Text(), HasSubstr("\nrows of a step: 5\n"));
}

TEST(DescribeRowOrderTest, NamesTheSeedOfAPermutationAlone) {
  EXPECT_EQ(DescribeRowOrder(10, /*shuffled=*/true, 7),
            "10 an epoch, shuffled by seed 7");
  EXPECT_EQ(DescribeRowOrder(10, /*shuffled=*/false, 7),
            "10 an epoch, in order");
}

}  // namespace
}  // namespace muster
