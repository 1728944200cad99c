#include "worker/hook/summary_hooks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "tests/common/summary/read_events.h"
#include "tests/testing/fake_clock.h"
#include "tests/testing/fake_file_system.h"
#include "tests/testing/status_matchers.h"
#include "worker/input/image/image_decoder.h"

namespace muster {
namespace {

using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using ::testing::SizeIs;

class SummaryHooksTest : public ::testing::Test {
 protected:
  SummaryHooksTest() : files_("logs") {
    EventFileWriter::Options options;
    options.file.file_system = &files_;
    options.file.folder = "logs/chief";
    options.clock = &clock_;
    // Nothing is written unless it is asked for.
    options.flush_every = absl::Hours(1);
    writer_ = std::make_unique<EventFileWriter>(options);
    parts_.writer = writer_.get();
    parts_.clock = &clock_;
    parts_.ask_job_state = [](const auto& done) { done(JobState()); };
    training_.mutable_optimizer()->set_name("sgd");
    training_.mutable_summary()->set_every_steps(1);
  }

  std::vector<std::unique_ptr<Hook>> MakeHooks() {
    auto hooks = MakeSummaryHooks(training_, parts_);
    EXPECT_THAT(hooks, IsOk());
    return *std::move(hooks);
  }

  // All points on the disk, by tag.
  std::map<std::string, Summary::Value> Points() {
    std::map<std::string, Summary::Value> points;
    const auto names = files_.List("logs/chief");
    if (!names.ok()) return points;
    for (const std::string& name : *names) {
      for (const Event& event :
           ReadEvents(files_.Contents("logs/chief/" + name))) {
        for (const auto& value : event.summary().value()) {
          points[value.tag()] = value;
        }
      }
    }
    return points;
  }

  std::set<std::string> Tags() {
    std::set<std::string> tags;
    for (const auto& [tag, value] : Points()) tags.insert(tag);
    return tags;
  }

  FakeFileSystem files_;
  FakeClock clock_;
  TrainingSpec training_;
  std::unique_ptr<EventFileWriter> writer_;
  SummaryParts parts_;
};

TEST_F(SummaryHooksTest, OneStepFillsTheCurves) {
  training_.mutable_summary()->set_histograms_every_steps(1);
  const std::vector<float> values = {1, 2};
  const std::vector<StepTensor> tensors = {{"w", {2}, true, values, values}};
  const auto hooks = MakeHooks();
  for (const auto& hook : hooks) ASSERT_THAT(hook->AfterEnter({}), IsOk());
  clock_.Advance(absl::Seconds(1));
  StepRecord step;
  step.tensors = tensors;
  for (const auto& hook : hooks) ASSERT_THAT(hook->BeforePush(step), IsOk());
  step.tensors = {};
  step.global_step = 1;
  for (const auto& hook : hooks) ASSERT_THAT(hook->AfterStep(step), IsOk());
  MakeEvaluationSummaries(writer_.get(), {})(
      1, {10, 1, {{{"accuracy", 0.5}}, {}}});
  writer_->Flush();
  EXPECT_THAT(Tags(), IsSupersetOf(
                          {"training_spec", "loss", "accuracy", "learning_rate",
                           "gradient_norm", "steps_per_s", "parameters/w",
                           "gradients/w", "test_accuracy", "test_loss"}));
}

TEST_F(SummaryHooksTest, ATableOfAnEvaluationIsAPicture) {
  const MetricResult::Table table = {"confusion_matrix", {{3, 1}, {0, 2}}};
  MakeEvaluationSummaries(writer_.get(), {})(7, {6, 1, {{}, {table}}});
  writer_->Flush();
  const auto points = Points();
  ASSERT_EQ(points.count("test_confusion_matrix"), 1u);
  const Summary::Value& point = points.at("test_confusion_matrix");
  EXPECT_EQ(point.metadata().plugin_data().plugin_name(), "images");
  // Width, height, and the picture.
  const auto& strings = point.tensor().string_val();
  ASSERT_EQ(strings.size(), 3);
  EXPECT_EQ(strings[0], "320");
  EXPECT_EQ(strings[1], "320");
  ImageDecoder reader = ImageDecoder::Create({1}).value();
  const auto image = reader.Decode(
      {reinterpret_cast<const uint8_t*>(strings[2].data()), strings[2].size()});
  ASSERT_THAT(image, IsOk());
  EXPECT_EQ(image->width, 320);
  // The first row's counts, and the second's.
  EXPECT_EQ(image->pixels.front(), 64);
  EXPECT_EQ(image->pixels[319], 191);
  EXPECT_EQ(image->pixels[319 * 320], 255);
  EXPECT_EQ(image->pixels.back(), 0);
}

TEST_F(SummaryHooksTest, FiguresByClassAreATableInText) {
  EvaluationResult result;
  result.metrics.by_class = {{"cat", 3, 1, 0.5, 0.75}, {"dog", 1, 0, 0, 0}};
  MakeEvaluationSummaries(writer_.get(), {})(7, result);
  writer_->Flush();
  const Summary::Value point = Points()["test_by_class"];
  EXPECT_EQ(point.metadata().plugin_data().plugin_name(), "text");
  ASSERT_EQ(point.tensor().string_val_size(), 1);
  EXPECT_THAT(point.tensor().string_val(0), HasSubstr("0.7500 |\n| dog "));
}

TEST_F(SummaryHooksTest, ATableThatCannotBeDrawnIsSaid) {
  std::string said;
  const Reporter reporter([&](Reporter::Level, absl::string_view line) {
    absl::StrAppend(&said, line);
  });
  const MetricResult::Table table = {"pairs", {{3, 1}}};
  MakeEvaluationSummaries(writer_.get(), reporter)(7, {6, 1, {{}, {table}}});
  writer_->Flush();
  EXPECT_THAT(said, HasSubstr("no picture of test_pairs at step 7: "));
  EXPECT_EQ(Tags(), std::set<std::string>{"test_loss"});
}

TEST_F(SummaryHooksTest, FiguresAndTablesHaveTheNameOfTheHalf) {
  EvaluationResult result{10, 1, {{{"accuracy", 0.5}}, {}}};
  result.metrics.tables = {{"confusion_matrix", {{3, 1}, {0, 2}}}};
  result.half = "validation";
  MakeEvaluationSummaries(writer_.get(), {})(7, result);
  writer_->Flush();
  EXPECT_EQ(Tags(), (std::set<std::string>{"validation_accuracy",
                                           "validation_confusion_matrix",
                                           "validation_loss"}));
}

TEST_F(SummaryHooksTest, PeriodsChooseTheHooks) {
  EXPECT_THAT(MakeHooks(), SizeIs(3));
  training_.mutable_summary()->set_histograms_every_steps(10);
  EXPECT_THAT(MakeHooks(), SizeIs(4));
  training_.mutable_summary()->set_every_steps(0);
  EXPECT_THAT(MakeHooks(), SizeIs(2));
  EXPECT_TRUE(HasSummaries(training_));
  training_.mutable_summary()->set_histograms_every_steps(0);
  EXPECT_FALSE(HasSummaries(training_));
}

TEST_F(SummaryHooksTest, WithoutAWriterThereIsNothingToDo) {
  parts_.writer = nullptr;
  parts_.example_shape = Shape({1, 2, 2});
  training_.mutable_summary()->set_images(1);
  EXPECT_THAT(MakeHooks(), SizeIs(0));
  EXPECT_EQ(MakeInputImages(training_.summary(), parts_), nullptr);
}

TEST_F(SummaryHooksTest, OnlyImagesAreShown) {
  SummarySpec* const summary = training_.mutable_summary();
  summary->set_images(1);
  parts_.example_shape = Shape({4});
  EXPECT_EQ(MakeInputImages(*summary, parts_), nullptr);
  parts_.example_shape = Shape({1, 2, 2});
  EXPECT_NE(MakeInputImages(*summary, parts_), nullptr);
  summary->set_images(0);
  EXPECT_EQ(MakeInputImages(*summary, parts_), nullptr);
}

TEST_F(SummaryHooksTest, ACheckpointIsNotAheadOfTheCurves) {
  std::set<std::string> at_the_save;
  const CheckpointSaver::Begin begin =
      WriteSummariesFirst(writer_.get(), [&]() -> absl::StatusOr<PendingSave> {
        PendingSave save;
        save.write = [&]() -> absl::StatusOr<std::string> {
          at_the_save = Tags();
          return "ckpt-1";
        };
        save.write_best = [write = save.write](const EvaluationHistory&) {
          return write();
        };
        return save;
      });
  MakeEvaluationSummaries(writer_.get(), {})(
      1, {10, 1, {{{"accuracy", 0.5}}, {}}});
  const auto save = begin();
  ASSERT_THAT(save, IsOk());
  EXPECT_TRUE(Tags().empty());
  EXPECT_EQ(save->write().value(), "ckpt-1");
  EXPECT_EQ(at_the_save.count("test_loss"), 1u);
  MakeEvaluationSummaries(writer_.get(), {})(
      2, {10, 1, {{{"precision", 0.5}}, {}}});
  EXPECT_EQ(save->write_best({}).value(), "ckpt-1");
  EXPECT_EQ(at_the_save.count("test_precision"), 1u);
}

TEST_F(SummaryHooksTest, ASaveThatDoesNotBeginIsHandedOn) {
  const CheckpointSaver::Begin begin =
      WriteSummariesFirst(writer_.get(), []() -> absl::StatusOr<PendingSave> {
        return absl::UnavailableError("gone");
      });
  EXPECT_THAT(begin(), StatusIs(absl::StatusCode::kUnavailable));
}

}  // namespace
}  // namespace muster
