#ifndef WORKER_TOWER_DEVICE_NAMES_H_
#define WORKER_TOWER_DEVICE_NAMES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace muster {

// A device is called BACKEND:INDEX, "cpu:1"; worker --list_devices prints all.

// The full name of what --device says: a device, a backend (its first device),
// or "auto" (the first of the best backend that there is). Errors:
// InvalidArgument naming `flag` and listing the devices, if there is no such.
absl::StatusOr<std::string> ResolveDevice(absl::string_view flag,
                                          absl::string_view device);

// "cpu" of "cpu:1".
std::string BackendOfDevice(absl::string_view device);

// What the flags ask for.
struct DeviceChoice {
  // --device.
  std::string device = "auto";
  // --devices.
  std::vector<std::string> devices;
  // --num_devices; 0: not given.
  int num_devices = 0;
};

// One device a tower, by full name: `devices`, or the first `num_devices` of
// the backend `device`. Errors: InvalidArgument if flags contradict each other,
// a device does not exist, or one is named twice.
absl::StatusOr<std::vector<std::string>> ChooseDevices(
    const DeviceChoice& choice);

// Every device as --list_devices prints it, those that are alike in one line:
//   cpu
//     cpu:0 to cpu:7: oneDNN 2.6.3, AVX2, 2 cores
std::string DescribeDevices();

}  // namespace muster

#endif  // WORKER_TOWER_DEVICE_NAMES_H_
