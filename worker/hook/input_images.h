#ifndef WORKER_HOOK_INPUT_IMAGES_H_
#define WORKER_HOOK_INPUT_IMAGES_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/reporter.h"
#include "common/summary/write_summary.h"
#include "common/tensor/shape.h"
#include "proto/summary.pb.h"
#include "worker/hook/hook.h"
#include "worker/hook/step_period.h"

namespace muster {

// The hook that shows some examples as the model reads them, as the tag
// `input`: at the first point of the curves after a start or a restore, and
// whenever Write is called.
class InputImages : public Hook {
 public:
  // The values of some examples as they are at this step, [examples, shape...].
  using ReadExamples =
      std::function<absl::StatusOr<std::vector<float>>(int64_t global_step)>;

  struct Options {
    // Global steps between two points of the curves.
    int64_t every_steps = 0;
    // One example's. REQUIRES: IsImage.
    Shape shape;
  };

  // `reporter` gets a line where examples cannot be read: that is no reason to
  // end the training, which will come to them itself.
  InputImages(Options options, ReadExamples read, WriteSummary write,
              Reporter reporter);

  absl::Status AfterEnter(const EpochRecord& epoch) override;
  absl::Status AfterStep(const StepRecord& step) override;

  // Writes the examples of this step, once.
  void Write(int64_t global_step);

 private:
  absl::StatusOr<Summary> Draw(int64_t global_step) const;

  const Options options_;
  const ReadExamples read_;
  const WriteSummary write_;
  const Reporter reporter_;
  StepPeriod period_;
  // The first point of the curves is still to come.
  bool awaits_first_point_ = true;
  // The newest step whose images were written; -1: none.
  int64_t written_step_ = -1;
};

}  // namespace muster

#endif  // WORKER_HOOK_INPUT_IMAGES_H_
