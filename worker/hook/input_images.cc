#include "worker/hook/input_images.h"

#include <cstddef>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "common/base/status_macros.h"
#include "common/summary/summary_value.h"
#include "worker/input/image/example_pixels.h"
#include "worker/input/image/png_encoder.h"

namespace muster {

InputImages::InputImages(Options options, ReadExamples read, WriteSummary write,
                         Reporter reporter)
    : options_(std::move(options)),
      read_(std::move(read)),
      write_(std::move(write)),
      reporter_(std::move(reporter)),
      period_(options_.every_steps) {}

absl::Status InputImages::AfterEnter(const EpochRecord& epoch) {
  period_.Start(epoch.global_step);
  awaits_first_point_ = true;
  written_step_ = -1;
  return absl::OkStatus();
}

absl::Status InputImages::AfterStep(const StepRecord& step) {
  if (!awaits_first_point_ || !period_.IsOver(step.global_step)) {
    return absl::OkStatus();
  }
  awaits_first_point_ = false;
  Write(step.global_step);
  return absl::OkStatus();
}

void InputImages::Write(int64_t global_step) {
  if (global_step == written_step_) return;
  written_step_ = global_step;
  absl::StatusOr<Summary> summary = Draw(global_step);
  if (summary.ok()) return write_(global_step, *std::move(summary));
  reporter_.Info(absl::StrCat("no input images at step ", global_step, ": ",
                              summary.status().message()));
}

absl::StatusOr<Summary> InputImages::Draw(int64_t global_step) const {
  ASSIGN_OR_RETURN(const std::vector<float> values, read_(global_step));
  const Shape& shape = options_.shape;
  const auto elements = static_cast<size_t>(shape.num_elements());
  std::vector<std::string> pngs;
  for (size_t at = 0; at + elements <= values.size(); at += elements) {
    const std::vector<uint8_t> pixels =
        ExamplePixels(absl::MakeConstSpan(values).subspan(at, elements), shape);
    ASSIGN_OR_RETURN(std::string png, EncodePng({shape.dim(1), shape.dim(2),
                                                 shape.dim(0), pixels}));
    pngs.push_back(std::move(png));
  }
  Summary summary;
  AddImages("input", shape.dim(2), shape.dim(1), pngs, &summary);
  return summary;
}

}  // namespace muster
