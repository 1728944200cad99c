#ifndef WORKER_TRAINING_REPLICA_DEVICES_H_
#define WORKER_TRAINING_REPLICA_DEVICES_H_

#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/reporter.h"
#include "proto/training.pb.h"
#include "worker/backend/backend.h"
#include "worker/executor/compiled_model.h"
#include "worker/tower/device_names.h"

namespace muster {

// A layer and the number of its part, or CompileOptions::kWholeLayer.
using LayerPart = std::pair<std::string, int>;

// The full names of the devices of those layers, and parts of them, that name
// one. A part without one is computed where its layer is, and a layer on its
// replica's own.
using LayerPlacement = std::map<LayerPart, std::string>;

// Finds the devices that the layers of `model` and their parts name. Those that
// are not to be had become the replica's own if `choice` allows soft placement,
// and `reporter` hears of it, a line a device. Errors: InvalidArgument naming
// the layer and its device; those of ModelGraph's devices (LayerDevices).
absl::StatusOr<LayerPlacement> PlaceLayers(const ModelSpec& model,
                                           const DeviceChoice& choice,
                                           const Reporter& reporter);

// The devices of one replica, opened. The first is its own.
struct ReplicaDevices {
  std::vector<std::string> names;
  std::vector<std::unique_ptr<Backend>> backends;
  // The number of its device, for those that name one.
  std::map<LayerPart, int> of_layer;
  // The most memory of each that computes in the host's.
  int64_t memory_limit_bytes = std::numeric_limits<int64_t>::max();

  Backend* own() const { return backends.front().get(); }
  // "cpu:0", or "cpu:0+cpu:1".
  std::string Title() const;
  // Lets `compile` compile for them. This struct stays where it is meanwhile,
  // and the backends outlive the model.
  void SetDevices(CompileOptions* compile) const;
};

// The backend of a device of ChooseDevices. Errors: those of CreateBackend;
// InvalidArgument naming --device for one that does not train.
absl::StatusOr<std::unique_ptr<Backend>> OpenDevice(const std::string& device,
                                                    BackendOptions options);

// The replica whose own device is `device`; the compute threads of `options`
// are divided among its devices, at least one each. Errors: those of
// OpenDevice.
absl::StatusOr<ReplicaDevices> OpenReplica(const std::string& device,
                                           const LayerPlacement& layers,
                                           BackendOptions options);

}  // namespace muster

#endif  // WORKER_TRAINING_REPLICA_DEVICES_H_
