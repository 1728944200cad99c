#ifndef WORKER_MODEL_LAYER_DEVICES_H_
#define WORKER_MODEL_LAYER_DEVICES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/training.pb.h"

namespace muster {

// The device that each layer of `model`, which has no blocks, names: its own,
// else that of the first rule whose pattern is the layer's whole name, else "".
// All are as CanonicalDevice has them. Errors: InvalidArgument naming the
// field, for a pattern that is none or matches no layer, and a rule without a
// device.
absl::StatusOr<std::vector<std::string>> LayerDevices(const ModelSpec& model);

}  // namespace muster

#endif  // WORKER_MODEL_LAYER_DEVICES_H_
