#include "worker/training/update_place.h"

#include "absl/strings/str_cat.h"
#include "worker/training/replication_settings.h"

namespace muster {
namespace {

// The clause for what is done with gradients between their computation and the
// update.
std::string WhyGradientsLeave(const TrainingSpec& training) {
  const GradientSpec& gradient = training.gradient();
  if (gradient.has_clip()) return "gradient.clip changes gradients";
  if (!gradient.codec().empty()) return "gradient.codec encodes gradients";
  if (!training.pull().codec().empty()) return "pull.codec encodes values";
  return "";
}

}  // namespace

std::string WhyShardUpdates(const TrainingSpec& training,
                            const UpdateSite& site) {
  const ReplicationSpec& replication = training.replication();
  if (!site.is_standalone) return "the parameters are on ps tasks";
  if (!site.has_device) return "the device has no memory of its own";
  if (site.shape.towers > 1) return "there are several towers";
  if (site.shape.accumulate_batches > 1) {
    return "gradient.accumulate_batches is more than 1";
  }
  if (!replication.has_async()) {
    return absl::StrCat("replication is ", ReplicationName(replication));
  }
  if (PipelineDepth(replication) > 1) {
    return "replication.async.pipeline_depth is more than 1";
  }
  for (const TensorDef& tensor : site.tensors) {
    if (tensor.kind() == TRAINABLE) continue;
    return absl::StrCat("'", tensor.name(), "' is a moving average");
  }
  return WhyGradientsLeave(training);
}

}  // namespace muster
