#include "worker/hook/input_images.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/reported_lines.h"
#include "tests/testing/status_matchers.h"
#include "tests/worker/hook/written_summaries.h"
#include "worker/input/image/pixel_limit.h"
#include "worker/input/image/png_image.h"

namespace muster {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr int kEvery = 10;

// The pixels of a grey PNG of 2 x 1.
std::vector<uint8_t> PixelsOf(const std::string& file) {
  const std::vector<uint8_t> png(file.begin(), file.end());
  absl::StatusOr<PngImage> image = PngImage::Open(png, kMaxPixels);
  EXPECT_THAT(image, IsOk());
  if (!image.ok()) return {};
  std::vector<uint8_t> pixels(2);
  EXPECT_THAT(image->Decode(1, pixels), IsOk());
  return pixels;
}

class InputImagesTest : public testing::Test {
 protected:
  void Enter(int64_t global_step) {
    EpochRecord epoch;
    epoch.global_step = global_step;
    EXPECT_THAT(hook_.AfterEnter(epoch), IsOk());
  }
  void Step(int64_t global_step) {
    StepRecord step;
    step.global_step = global_step;
    EXPECT_THAT(hook_.AfterStep(step), IsOk());
  }
  std::vector<int64_t> Steps() const {
    std::vector<int64_t> steps;
    for (const auto& point : written_.points) steps.push_back(point.step);
    return steps;
  }

  absl::Status read_error_;
  WrittenSummaries written_;
  ReportedLines said_;
  // Two examples; the first tells the step.
  InputImages hook_{
      {kEvery, Shape({1, 1, 2})},
      [this](int64_t global_step) -> absl::StatusOr<std::vector<float>> {
        if (!read_error_.ok()) return read_error_;
        return std::vector<float>{static_cast<float>(global_step) / 255, 0, 0,
                                  1};
      },
      written_.Writer(),
      said_.reporter()};
};

TEST_F(InputImagesTest, WritesAPngOfEachExample) {
  Enter(0);
  hook_.Write(7);
  ASSERT_THAT(Steps(), ElementsAre(7));
  const SummaryTensor& images = written_.points[0].tensors.at("input");
  ASSERT_EQ(images.string_val_size(), 4);
  EXPECT_EQ(images.string_val(0), "2");
  EXPECT_EQ(images.string_val(1), "1");
  EXPECT_THAT(PixelsOf(images.string_val(2)), ElementsAre(7, 0));
  EXPECT_THAT(PixelsOf(images.string_val(3)), ElementsAre(0, 255));
}

TEST_F(InputImagesTest, TheFirstPointOfTheCurvesHasThem) {
  Enter(0);
  for (const int step : {9, 10, 11, 20, 30}) Step(step);
  EXPECT_THAT(Steps(), ElementsAre(10));
  Enter(14);
  for (const int step : {15, 21, 31}) Step(step);
  EXPECT_THAT(Steps(), ElementsAre(10, 21));
}

TEST_F(InputImagesTest, AStepHasThemOnce) {
  Enter(0);
  hook_.Write(10);
  Step(10);
  hook_.Write(10);
  hook_.Write(20);
  EXPECT_THAT(Steps(), ElementsAre(10, 20));
}

TEST_F(InputImagesTest, ExamplesThatCannotBeReadAreALine) {
  read_error_ = absl::DataLossError("row 0 of 'x.png' is damaged");
  Enter(0);
  Step(10);
  EXPECT_THAT(Steps(), ElementsAre());
  EXPECT_THAT(said_.lines(),
              ElementsAre(HasSubstr("no input images at step 10: row 0 of")));
}

}  // namespace
}  // namespace muster
