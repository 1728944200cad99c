#include "worker/ctl/training_flag.h"

#include "absl/status/status.h"
#include "worker/training/training_spec.h"

namespace muster {

absl::StatusOr<TrainingSpec> LoadTrainingOf(const VerbCall& call) {
  if (call.Flag("training").empty()) {
    return absl::InvalidArgumentError(
        "--training is missing: give it a training spec, for example "
        "worker/model/zoo/mnist_cnn.textproto");
  }
  return LoadTrainingSpec(call.Flag("training"), call.Repeated("set"));
}

}  // namespace muster
