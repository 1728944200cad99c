#include "worker/training/replica_devices.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "common/base/status_macros.h"
#include "worker/model/layer_devices.h"

namespace muster {
namespace {

// The number of `device` among the replica's, to which it is added.
int NumberOf(const std::string& device, ReplicaDevices* devices) {
  const auto found = absl::c_find(devices->names, device);
  const auto number = static_cast<int>(found - devices->names.begin());
  if (found == devices->names.end()) devices->names.push_back(device);
  return number;
}

class Placing {
 public:
  Placing(const DeviceChoice& choice, const Reporter& reporter)
      : choice_(choice), reporter_(reporter) {}

  absl::Status Place(const LayerPart& part, const std::string& device) {
    if (device.empty()) return absl::OkStatus();
    const auto name = FindDevice("device", device, choice_.gpu);
    if (name.ok()) {
      placement_[part] = *name;
      return absl::OkStatus();
    }
    const std::string message =
        absl::StrCat("layer '", part.first, "': ", name.status().message());
    if (!absl::IsNotFound(name.status()) || !choice_.allow_soft_placement) {
      return absl::InvalidArgumentError(message);
    }
    if (missing_.insert(device).second) {
      reporter_.Info(
          absl::StrCat(message,
                       "; the worker's own device is used for all that name "
                       "it, as --allow_soft_placement says"));
    }
    return absl::OkStatus();
  }
  LayerPlacement Take() && { return std::move(placement_); }

 private:
  const DeviceChoice& choice_;
  const Reporter& reporter_;
  LayerPlacement placement_;
  std::set<std::string> missing_;
};

}  // namespace

absl::StatusOr<LayerPlacement> PlaceLayers(const ModelSpec& model,
                                           const DeviceChoice& choice,
                                           const Reporter& reporter) {
  ASSIGN_OR_RETURN(const std::vector<std::string> devices, LayerDevices(model));
  Placing placing(choice, reporter);
  for (int i = 0; i < model.layer_size(); ++i) {
    const LayerSpec& layer = model.layer(i);
    RETURN_IF_ERROR(
        placing.Place({layer.name(), CompileOptions::kWholeLayer}, devices[i]));
    for (int part = 0; part < layer.split().devices_size(); ++part) {
      RETURN_IF_ERROR(placing.Place(
          {layer.name(), part}, CanonicalDevice(layer.split().devices(part))));
    }
  }
  return std::move(placing).Take();
}

std::string ReplicaDevices::Title() const { return absl::StrJoin(names, "+"); }

void ReplicaDevices::SetDevices(CompileOptions* compile) const {
  compile->backend = own();
  compile->device_names = names;
  compile->device_memory_limit_bytes = memory_limit_bytes;
  compile->more_backends.clear();
  for (size_t i = 1; i < backends.size(); ++i) {
    compile->more_backends.push_back(backends[i].get());
  }
  compile->device_of = [this](absl::string_view layer, int part) {
    const std::string name(layer);
    auto found = of_layer.find({name, part});
    if (found == of_layer.end()) {
      found = of_layer.find({name, CompileOptions::kWholeLayer});
    }
    return found == of_layer.end() ? 0 : found->second;
  };
}

absl::StatusOr<std::unique_ptr<Backend>> OpenDevice(const std::string& device,
                                                    BackendOptions options) {
  options.device_index = IndexOfDevice(device);
  ASSIGN_OR_RETURN(std::unique_ptr<Backend> backend,
                   CreateBackend(BackendOfDevice(device), options));
  if (backend->dtype() == FLOAT32) return backend;
  return absl::InvalidArgumentError(
      absl::StrCat("--device=", device, ": training needs a float32 backend"));
}

absl::StatusOr<ReplicaDevices> OpenReplica(const std::string& device,
                                           const LayerPlacement& layers,
                                           BackendOptions options) {
  ReplicaDevices devices;
  devices.names.push_back(device);
  devices.memory_limit_bytes = options.device_memory_limit_bytes;
  for (const auto& [layer, name] : layers) {
    devices.of_layer[layer] = NumberOf(name, &devices);
  }
  options.compute_threads = std::max(
      1, options.compute_threads / static_cast<int>(devices.names.size()));
  for (const std::string& name : devices.names) {
    ASSIGN_OR_RETURN(std::unique_ptr<Backend> backend,
                     OpenDevice(name, options));
    devices.backends.push_back(std::move(backend));
  }
  return devices;
}

}  // namespace muster
