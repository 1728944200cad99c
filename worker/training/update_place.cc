#include "worker/training/update_place.h"

#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "worker/backend/device_rule.h"
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
  if (site.is_divided) return "the model is divided";
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
    return absl::StrCat(
        "'", tensor.name(), "' is ",
        tensor.kind() == FROZEN ? "frozen" : "a moving average");
  }
  return WhyGradientsLeave(training);
}

absl::StatusOr<DeviceUpdate*> PlaceUpdates(const TrainingSpec& training,
                                           UpdateSite site,
                                           const TowerParts& tower,
                                           UpdateRule* rule,
                                           const Reporter& reporter) {
  const ComputeSpec& compute = training.compute();
  const bool is_asked_for = compute.update_on_device();
  if (compute.has_update_on_device() && !is_asked_for) return nullptr;
  site.has_device = tower.devices.own()->streams() != nullptr;
  site.is_divided = tower.model->is_divided();
  site.tensors = tower.model->parameters();
  std::string why = WhyShardUpdates(training, site);
  if (why.empty()) {
    absl::StatusOr<std::unique_ptr<DeviceRule>> on_device =
        tower.devices.own()->CreateRule(rule);
    if (on_device.ok()) {
      ASSIGN_OR_RETURN(
          DeviceUpdate * update,
          tower.model->UpdateOnDevice(*std::move(on_device),
                                      static_cast<int>(rule->slots().size())));
      reporter.Info(absl::StrCat("parameters stay on ", tower.devices.Title(),
                                 ", and are updated there"));
      return update;
    }
    if (!absl::IsUnimplemented(on_device.status())) return on_device.status();
    why = std::string(on_device.status().message());
  }
  if (is_asked_for) {
    reporter.Info(
        absl::StrCat("compute.update_on_device is not possible, the host "
                     "updates the parameters: ",
                     why));
  }
  return nullptr;
}

}  // namespace muster
