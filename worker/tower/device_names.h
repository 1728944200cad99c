#ifndef WORKER_TOWER_DEVICE_NAMES_H_
#define WORKER_TOWER_DEVICE_NAMES_H_

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "worker/backend/backend.h"
#include "worker/backend/device_name.h"

namespace muster {

// Which devices there are; `worker devices` prints all.

// The devices that the flags ask for.
struct DeviceChoice {
  // --device: a device, a backend (its first devices), or "auto" (the first
  // usable one of cuda and cpu). Devices are written as CanonicalDevice reads
  // them.
  std::string device = "auto";
  // --devices.
  std::vector<std::string> devices;
  // --devices as a number; 0: it is none.
  int num_devices = 0;
  // A device that is not there, or cannot be used, has the cpu in its place.
  bool allow_soft_placement = false;
  // --device_memory_limit_mb, in bytes: the most for each device that computes
  // in the host's memory.
  int64_t memory_limit_bytes = std::numeric_limits<int64_t>::max();
  GpuOptions gpu;
};

// The devices of a choice.
struct ChosenDevices {
  // One a tower, by full name.
  std::vector<std::string> names;
  // A line for the operator: what was wanted, why it is not to be had, and what
  // is used instead. Empty if all is as it was asked for.
  std::string note;
};

// `choice.devices`, or the first `num_devices` (at least one) of the backend
// `device`. With allow_soft_placement, if one of them cannot be had, as many
// devices of the cpu. Errors: InvalidArgument if flags contradict each other, a
// device is named twice, does not exist or cannot be used, or a GPU option is
// out of range.
absl::StatusOr<ChosenDevices> ChooseDevices(const DeviceChoice& choice);

// The full name of a device, written as CanonicalDevice reads it, or of a
// backend's first. Errors: InvalidArgument naming `flag` and listing the
// devices, if there is no such; NotFound, if it could be in another build or on
// another machine, or cannot be used.
absl::StatusOr<std::string> FindDevice(absl::string_view flag,
                                       absl::string_view device,
                                       const GpuOptions& gpu);

// The same; InvalidArgument in any case.
absl::StatusOr<std::string> ResolveDevice(absl::string_view flag,
                                          absl::string_view device,
                                          const GpuOptions& gpu);

// Errors: InvalidArgument naming each flag of `gpu` that is not its default, in
// a program without CUDA.
absl::Status CheckGpuFlags(const GpuOptions& gpu);

// Every device as `worker devices` prints it, those that are alike in one line:
//   cpu
//     cpu:0 to cpu:7: oneDNN 2.6.3, AVX2, 2 cores
//   cuda
//     cuda:0: unusable: no driver: ...
std::string DescribeDevices(const GpuOptions& gpu);

}  // namespace muster

#endif  // WORKER_TOWER_DEVICE_NAMES_H_
