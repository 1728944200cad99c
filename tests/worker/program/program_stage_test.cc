#include "worker/program/program_stage.h"

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "common/base/clock.h"
#include "common/config/text_format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/worker/task/local_ps_tasks.h"
#include "worker/task/worker_options.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
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

class ProgramStageTest : public testing::Test {
 protected:
  ProgramStageTest() {
    EXPECT_THAT(ParseTextProto(kTraining, "test", &options_.training), IsOk());
    options_.self.set_job("worker");
    options_.clock = SystemClock();
    ProgramTensor& tensor = model_.tensors.emplace_back();
    tensor.set_name("w");
    tensor.add_shape(2);
    model_.values = {absl::MakeSpan(w_)};
  }

  absl::Status Create() {
    stage_ = nullptr;
    absl::StatusOr<WorkerJob> job = WorkerJob::Create(options_);
    if (!job.ok()) return job.status();
    auto placed = PlaceProgram(*std::move(job), model_);
    if (!placed.ok()) return placed.status();
    placed_ = *std::move(placed);
    auto stage =
        ProgramStage::Create(placed_.get(), &model_, &steps_, ps_.MakeLinks());
    if (!stage.ok()) return stage.status();
    stage_ = *std::move(stage);
    return absl::OkStatus();
  }
  // The text that workers must have alike.
  std::string Text() {
    EXPECT_THAT(Create(), IsOk());
    return stage_ == nullptr ? "" : stage_->traits().training_text;
  }
  // Whether the text is another one once `change` was made.
  bool Differs(const std::function<void()>& change) {
    const std::string before = Text();
    change();
    return Text() != before;
  }

  WorkerOptions options_;
  std::vector<float> w_ = {1, 2};
  TrainedProgram model_;
  std::unique_ptr<ProgramStage> stage_;

 private:
  LocalPsTasks ps_{/*num_ps=*/1, /*num_workers=*/1};
  ProgramSteps steps_{ProgramSteps::Options()};
  std::unique_ptr<PlacedTraining> placed_;
};

TEST_F(ProgramStageTest, TrainingThatBeginsOnceMore_HasTheSameValues) {
  ASSERT_THAT(Create(), IsOk());
  // Trained.
  w_ = {7, 7};
  const auto values = stage_->MakeInitialValues();
  ASSERT_THAT(values, IsOk());
  ASSERT_EQ(values->size(), 1);
  EXPECT_THAT(values->front(), ElementsAre(1, 2));
}

TEST_F(ProgramStageTest, OtherTensors_MakeAnotherText) {
  EXPECT_TRUE(Differs([this] { model_.tensors[0].set_name("v"); }));
  EXPECT_TRUE(Differs([this] { model_.tensors[0].set_is_state(true); }));
  EXPECT_TRUE(Differs([this] { model_.tensors[0].add_shape(1); }));
}

TEST_F(ProgramStageTest, OtherTables_MakeAnotherText) {
  EXPECT_TRUE(Differs([this] {
    model_.tables.emplace_back().set_name("user");
    model_.tables[0].set_dim(2);
  }));
  EXPECT_TRUE(Differs([this] { model_.tables[0].set_dim(3); }));
  EXPECT_TRUE(Differs([this] { model_.tables[0].set_name("item"); }));
}

TEST_F(ProgramStageTest, OtherTraining_MakesAnotherText) {
  EXPECT_TRUE(Differs([this] { options_.training.set_seed(4); }));
  EXPECT_TRUE(Differs([this] {
    options_.training.mutable_optimizer()->mutable_attr(0)->set_f(0.5);
  }));
  EXPECT_TRUE(Differs(
      [this] { options_.training.mutable_replication()->mutable_sync(); }));
}

TEST_F(ProgramStageTest, OtherRows_MakeAnotherText) {
  model_.step_rows = 2;
  EXPECT_TRUE(Differs([this] { model_.epoch_rows = 10; }));
  EXPECT_TRUE(Differs([this] { model_.in_order = true; }));
}

TEST_F(ProgramStageTest, OtherSettings_MakeAnotherTextOfOneLine) {
  EXPECT_TRUE(Differs([this] { model_.settings = "weight_decay=0.1"; }));
  EXPECT_THAT(Text(), HasSubstr("\nsettings: weight_decay=0.1\n"));
  model_.settings = "a\nb";
  EXPECT_THAT(Text(), HasSubstr("\nsettings: a\\nb\n"));
}

TEST_F(ProgramStageTest, StepRows_MustBeAlikeInAMeanOfSeveralAlone) {
  model_.epoch_rows = 10;
  model_.step_rows = 2;
  EXPECT_FALSE(Differs([this] { model_.step_rows = 5; }));
  options_.training.mutable_replication()->mutable_sync();
  EXPECT_TRUE(Differs([this] { model_.step_rows = 2; }));
}

TEST_F(ProgramStageTest, StepOfMoreRowsThanAnEpoch_IsRefused) {
  model_.epoch_rows = 10;
  model_.step_rows = 11;
  EXPECT_THAT(Create(), StatusIs(absl::StatusCode::kInvalidArgument,
                                 HasSubstr("step_rows is 11")));
}

}  // namespace
}  // namespace muster
