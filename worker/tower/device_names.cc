#include "worker/tower/device_names.h"

#include <utility>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"
#include "worker/backend/backend.h"

namespace muster {
namespace {

// "auto": the first of these that is registered and has a device.
constexpr const char* kPreferredBackends[] = {"cpu", "ref"};
constexpr absl::string_view kCudaBackend = "cuda";

std::vector<Device> DevicesOf(absl::string_view backend) {
  const auto factory = BackendRegistry::Find(backend);
  return factory.ok() ? factory->devices() : std::vector<Device>();
}

// "cpu:0 to cpu:7: oneDNN 2.6.3", one element a run of devices that are alike;
// without the descriptions if `names_only`.
std::vector<std::string> Runs(const std::vector<Device>& devices,
                              bool names_only) {
  std::vector<std::string> runs;
  for (size_t first = 0, last = 0; first < devices.size(); first = last + 1) {
    last = first;
    while (last + 1 < devices.size() &&
           devices[last + 1].description == devices[first].description) {
      ++last;
    }
    std::string run = devices[first].name;
    if (last > first) absl::StrAppend(&run, " to ", devices[last].name);
    if (!names_only) absl::StrAppend(&run, ": ", devices[first].description);
    runs.push_back(std::move(run));
  }
  return runs;
}

std::string AllDevices() {
  std::vector<std::string> all;
  for (const std::string& backend : BackendRegistry::Names()) {
    for (std::string& run : Runs(DevicesOf(backend), /*names_only=*/true)) {
      all.push_back(std::move(run));
    }
  }
  return absl::StrJoin(all, ", ");
}

absl::Status NoSuchDevice(absl::string_view flag, absl::string_view device) {
  // A name that is meant to work one day: "no such device" would send the user
  // looking for a typing error or for a driver.
  if (BackendOfDevice(device) == kCudaBackend &&
      !BackendRegistry::Find(kCudaBackend).ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(flag, "=", device,
                     ": this version has no CUDA backend; use --device=cpu, or "
                     "--device=auto, which takes the best that there is"));
  }
  return absl::InvalidArgumentError(
      absl::StrCat(flag, "=", device, ": there is no device '", device,
                   "'; there are ", AllDevices()));
}

absl::StatusOr<std::vector<std::string>> FirstDevices(absl::string_view backend,
                                                      int count) {
  std::vector<std::string> names;
  for (const Device& device : DevicesOf(backend)) {
    if (static_cast<int>(names.size()) == count) break;
    names.push_back(device.name);
  }
  if (static_cast<int>(names.size()) == count) return names;
  return absl::InvalidArgumentError(
      absl::StrCat("--num_devices=", count, ": backend '", backend, "' has ",
                   names.size(), "; there are ", AllDevices()));
}

absl::StatusOr<std::vector<std::string>> NamedDevices(
    const DeviceChoice& choice) {
  const int count = static_cast<int>(choice.devices.size());
  if (choice.device != "auto") {
    return absl::InvalidArgumentError(
        absl::StrCat("--device=", choice.device,
                     " and --devices=", absl::StrJoin(choice.devices, ","),
                     " are two answers to one question: give --devices alone"));
  }
  if (choice.num_devices != 0 && choice.num_devices != count) {
    return absl::InvalidArgumentError(
        absl::StrCat("--num_devices=", choice.num_devices, ": --devices names ",
                     count, "; give --devices alone"));
  }
  std::vector<std::string> names;
  for (const std::string& device : choice.devices) {
    ASSIGN_OR_RETURN(std::string name, ResolveDevice("--devices", device));
    if (absl::c_linear_search(names, name)) {
      return absl::InvalidArgumentError(
          absl::StrCat("--devices=", absl::StrJoin(choice.devices, ","),
                       " names ", name, " twice: a device has one tower"));
    }
    names.push_back(std::move(name));
  }
  return names;
}

}  // namespace

std::string BackendOfDevice(absl::string_view device) {
  return std::string(device.substr(0, device.find(':')));
}

absl::StatusOr<std::string> ResolveDevice(absl::string_view flag,
                                          absl::string_view device) {
  if (device == "auto") {
    for (const char* const backend : kPreferredBackends) {
      const std::vector<Device> devices = DevicesOf(backend);
      if (!devices.empty()) return devices.front().name;
    }
  }
  for (const Device& candidate : DevicesOf(BackendOfDevice(device))) {
    if (candidate.name == device || !absl::StrContains(device, ':')) {
      return candidate.name;
    }
  }
  return NoSuchDevice(flag, device);
}

absl::StatusOr<std::vector<std::string>> ChooseDevices(
    const DeviceChoice& choice) {
  if (choice.num_devices < 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--num_devices=", choice.num_devices, ": wanted 1 or more"));
  }
  if (!choice.devices.empty()) return NamedDevices(choice);
  ASSIGN_OR_RETURN(const std::string first,
                   ResolveDevice("--device", choice.device));
  if (choice.num_devices <= 1) return std::vector<std::string>{first};
  if (absl::StrContains(choice.device, ':')) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--device=", choice.device, " with --num_devices=", choice.num_devices,
        ": it is one device; give --device=", BackendOfDevice(first),
        ", or name all in --devices"));
  }
  return FirstDevices(BackendOfDevice(first), choice.num_devices);
}

std::string DescribeDevices() {
  std::string text;
  for (const std::string& backend : BackendRegistry::Names()) {
    absl::StrAppend(&text, backend, "\n");
    for (const std::string& run :
         Runs(DevicesOf(backend), /*names_only=*/false)) {
      absl::StrAppend(&text, "  ", run, "\n");
    }
  }
  return text;
}

}  // namespace muster
