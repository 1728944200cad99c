// The flags that say what computes, of all verbs.
#ifndef WORKER_VERB_DEVICE_FLAGS_H_
#define WORKER_VERB_DEVICE_FLAGS_H_

#include <string>
#include <vector>

#include "absl/flags/declare.h"
#include "absl/status/statusor.h"
#include "common/cluster/cluster_resolver.h"
#include "common/config/command_line.h"
#include "proto/training.pb.h"
#include "worker/backend/backend.h"
#include "worker/task/compute_cores.h"
#include "worker/tower/device_names.h"

ABSL_DECLARE_FLAG(std::vector<std::string>, devices);
ABSL_DECLARE_FLAG(bool, log_device_placement);

namespace muster {

// The groups of --help: one device, one or several (--devices), and GPUs.
FlagGroup DeviceFlagGroup();
FlagGroup DevicesFlagGroup();
FlagGroup GpuFlagGroup();

// Errors: InvalidArgument for a number out of range, or for GPU flags in a
// program without CUDA.
absl::StatusOr<GpuOptions> GpuFlags();

// Errors: GpuFlags', and InvalidArgument naming the flag.
absl::StatusOr<DeviceChoice> DeviceFlags();

// Pins this process, and says how many threads compute. `cluster` has an empty
// spec for a process that computes alone. Errors: PinToCpus', ChooseThreads',
// CheckThreads'.
absl::StatusOr<ComputeThreads> SetUpCores(const ResolvedCluster& cluster,
                                          const InputSpec& input);

}  // namespace muster

#endif  // WORKER_VERB_DEVICE_FLAGS_H_
