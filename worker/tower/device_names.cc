#include "worker/tower/device_names.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"

namespace muster {
namespace {

constexpr absl::string_view kAuto = "auto";
constexpr absl::string_view kCudaBackend = "cuda";
// The backend that stands in for a device that is not there.
constexpr absl::string_view kSoftBackend = "cpu";
// "auto": the first of these that is linked and has a usable device.
constexpr absl::string_view kPreferredBackends[] = {kCudaBackend, kSoftBackend};
constexpr absl::string_view kNoCuda =
    "this program was built without CUDA (bazel build --config=cuda)";

bool IsLinked(absl::string_view backend) {
  return absl::c_linear_search(BackendRegistry::Names(), backend);
}

std::vector<Device> DevicesOf(absl::string_view backend,
                              const GpuOptions& gpu) {
  const auto factory = BackendRegistry::Find(backend);
  return factory.ok() ? factory->devices(gpu) : std::vector<Device>();
}

bool IsUsable(const Device& device) { return device.unusable.empty(); }

// The device's line in `worker devices`.
std::string Describe(const Device& device) {
  if (IsUsable(device)) return device.description;
  return absl::StrCat(device.description,
                      device.description.empty() ? "" : "; ",
                      "unusable: ", device.unusable);
}

// "cpu:0 to cpu:7: oneDNN 2.6.3", one element a run of devices that are alike;
// without the descriptions if `names_only`.
std::vector<std::string> Runs(const std::vector<Device>& devices,
                              bool names_only) {
  std::vector<std::string> runs;
  for (size_t first = 0, last = 0; first < devices.size(); first = last + 1) {
    const std::string description = Describe(devices[first]);
    last = first;
    while (last + 1 < devices.size() &&
           Describe(devices[last + 1]) == description) {
      ++last;
    }
    std::string run = devices[first].name;
    if (last > first) absl::StrAppend(&run, " to ", devices[last].name);
    if (!names_only) absl::StrAppend(&run, ": ", description);
    runs.push_back(std::move(run));
  }
  return runs;
}

std::vector<Device> UsableDevices(absl::string_view backend,
                                  const GpuOptions& gpu) {
  std::vector<Device> devices = DevicesOf(backend, gpu);
  devices.erase(
      std::remove_if(devices.begin(), devices.end(),
                     [](const Device& device) { return !IsUsable(device); }),
      devices.end());
  return devices;
}

std::string AllUsable(const GpuOptions& gpu) {
  std::vector<std::string> all;
  for (const std::string& backend : BackendRegistry::Names()) {
    for (std::string& run :
         Runs(UsableDevices(backend, gpu), /*names_only=*/true)) {
      all.push_back(std::move(run));
    }
  }
  return absl::StrJoin(all, ", ");
}

// The first `count` usable devices; fewer if it has fewer.
std::vector<std::string> FirstUsable(absl::string_view backend, int count,
                                     const GpuOptions& gpu) {
  std::vector<std::string> names;
  for (const Device& device : UsableDevices(backend, gpu)) {
    if (static_cast<int>(names.size()) == count) break;
    names.push_back(device.name);
  }
  return names;
}

// NotFound: the device could exist, on another machine or in another build.
absl::Status Missing(absl::string_view flag, absl::string_view device,
                     absl::string_view why) {
  return absl::NotFoundError(absl::StrCat(flag, "=", device, ": ", why));
}

absl::Status NoSuchDevice(absl::string_view flag, absl::string_view device,
                          const GpuOptions& gpu) {
  const std::string name = CanonicalDevice(device);
  const std::string backend = BackendOfDevice(name);
  if (backend == kCudaBackend && !IsLinked(backend)) {
    return Missing(flag, device, kNoCuda);
  }
  const std::string why = absl::StrCat("there is no device '", device,
                                       "'; there are ", AllUsable(gpu));
  if (IsLinked(backend) && IndexOfDevice(name) >= 0) {
    return Missing(flag, device, why);
  }
  return absl::InvalidArgumentError(absl::StrCat(flag, "=", device, ": ", why));
}

absl::Status AsInvalidArgument(const absl::Status& status) {
  return absl::IsNotFound(status) ? absl::InvalidArgumentError(status.message())
                                  : status;
}

// Why "auto" took `chosen` and nothing better; "" if there is nothing better,
// or nobody built this program for it.
std::string PassedOver(absl::string_view chosen, const GpuOptions& gpu) {
  if (BackendOfDevice(chosen) == kCudaBackend) return "";
  const std::vector<Device> devices = DevicesOf(kCudaBackend, gpu);
  if (devices.empty()) return "";
  return absl::StrCat(devices.front().name,
                      " cannot be used: ", devices.front().unusable, "; ",
                      chosen, " is used");
}

absl::StatusOr<std::string> BestBackend(const GpuOptions& gpu) {
  for (const absl::string_view backend : kPreferredBackends) {
    if (!UsableDevices(backend, gpu).empty()) return std::string(backend);
  }
  return absl::InvalidArgumentError(
      "--device=auto: this program has no usable device");
}

absl::Status CheckChoice(const DeviceChoice& choice) {
  const int count = static_cast<int>(choice.devices.size());
  if (choice.num_devices < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("--devices=", choice.num_devices, ": wanted 1 or more"));
  }
  if (count == 0) {
    if (choice.num_devices <= 1 || !absl::StrContains(choice.device, ':')) {
      return absl::OkStatus();
    }
    return absl::InvalidArgumentError(absl::StrCat(
        "--device=", choice.device, " with --devices=", choice.num_devices,
        ": it is one device; give --device=",
        BackendOfDevice(CanonicalDevice(choice.device)),
        ", or name all in --devices"));
  }
  if (choice.device != kAuto) {
    return absl::InvalidArgumentError(
        absl::StrCat("--device=", choice.device,
                     " and --devices=", absl::StrJoin(choice.devices, ","),
                     " are two answers to one question: give --devices alone"));
  }
  if (choice.num_devices != 0 && choice.num_devices != count) {
    return absl::InvalidArgumentError(
        absl::StrCat("--devices=", choice.num_devices, ": --devices names ",
                     count, "; give --devices alone"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> NamedDevices(
    const DeviceChoice& choice) {
  std::vector<std::string> names;
  for (const std::string& device : choice.devices) {
    ASSIGN_OR_RETURN(std::string name,
                     FindDevice("--devices", device, choice.gpu));
    if (absl::c_linear_search(names, name)) {
      return absl::InvalidArgumentError(
          absl::StrCat("--devices=", absl::StrJoin(choice.devices, ","),
                       " names ", name, " twice: a device has one tower"));
    }
    names.push_back(std::move(name));
  }
  return names;
}

absl::StatusOr<std::vector<std::string>> FirstDevices(absl::string_view backend,
                                                      int count,
                                                      const GpuOptions& gpu) {
  std::vector<std::string> names = FirstUsable(backend, count, gpu);
  if (static_cast<int>(names.size()) == count) return names;
  return absl::NotFoundError(absl::StrCat(
      "--devices=", count, ": backend '", backend, "' has ", names.size(),
      " that can be used; there are ", AllUsable(gpu)));
}

// Just what was asked for. NotFound for what is Missing.
absl::StatusOr<std::vector<std::string>> ExactDevices(
    const DeviceChoice& choice) {
  if (!choice.devices.empty()) return NamedDevices(choice);
  if (choice.device == kAuto) {
    ASSIGN_OR_RETURN(const std::string backend, BestBackend(choice.gpu));
    return FirstDevices(backend, std::max(choice.num_devices, 1), choice.gpu);
  }
  ASSIGN_OR_RETURN(const std::string first,
                   FindDevice("--device", choice.device, choice.gpu));
  if (choice.num_devices <= 1) return std::vector<std::string>{first};
  return FirstDevices(BackendOfDevice(first), choice.num_devices, choice.gpu);
}

// As many of the cpu, for what is `missing`.
absl::StatusOr<ChosenDevices> SoftDevices(const DeviceChoice& choice,
                                          const absl::Status& missing) {
  const int count = std::max(
      {1, choice.num_devices, static_cast<int>(choice.devices.size())});
  ChosenDevices chosen;
  chosen.names = FirstUsable(kSoftBackend, count, choice.gpu);
  if (static_cast<int>(chosen.names.size()) < count) {
    return AsInvalidArgument(missing);
  }
  chosen.note = absl::StrCat(
      missing.message(), "; ", absl::StrJoin(chosen.names, ", "),
      count == 1 ? " is" : " are", " used, as --allow_soft_placement says");
  return chosen;
}

}  // namespace

absl::StatusOr<std::string> FindDevice(absl::string_view flag,
                                       absl::string_view device,
                                       const GpuOptions& gpu) {
  const std::string name = CanonicalDevice(device);
  const bool is_backend = !absl::StrContains(name, ':');
  const std::vector<Device> devices = DevicesOf(BackendOfDevice(name), gpu);
  for (const Device& candidate : devices) {
    if (is_backend ? IsUsable(candidate) : candidate.name == name) {
      if (IsUsable(candidate)) return candidate.name;
      return Missing(flag, device,
                     absl::StrCat("it cannot be used: ", candidate.unusable));
    }
  }
  if (!is_backend || devices.empty()) return NoSuchDevice(flag, device, gpu);
  return Missing(flag, device,
                 absl::StrCat(devices.front().name,
                              " cannot be used: ", devices.front().unusable));
}

absl::StatusOr<std::string> ResolveDevice(absl::string_view flag,
                                          absl::string_view device,
                                          const GpuOptions& gpu) {
  auto name = FindDevice(flag, device, gpu);
  if (!name.ok()) return AsInvalidArgument(name.status());
  return name;
}

absl::StatusOr<ChosenDevices> ChooseDevices(const DeviceChoice& choice) {
  RETURN_IF_ERROR(CheckGpuOptions(choice.gpu));
  RETURN_IF_ERROR(CheckChoice(choice));
  auto exact = ExactDevices(choice);
  if (absl::IsNotFound(exact.status()) && choice.allow_soft_placement) {
    return SoftDevices(choice, exact.status());
  }
  if (absl::IsNotFound(exact.status())) {
    return absl::InvalidArgumentError(
        absl::StrCat(exact.status().message(),
                     "; --device=auto takes the best that there is, "
                     "--allow_soft_placement the cpu instead"));
  }
  if (!exact.ok()) return exact.status();
  ChosenDevices chosen;
  chosen.names = *std::move(exact);
  if (choice.devices.empty() && choice.device == kAuto) {
    chosen.note = PassedOver(chosen.names.front(), choice.gpu);
  }
  return chosen;
}

absl::Status CheckGpuFlags(const GpuOptions& gpu) {
  const GpuOptions unset;
  std::vector<std::string> flags;
  if (gpu.memory_fraction != unset.memory_fraction) {
    flags.push_back("--gpu_memory_fraction");
  }
  if (gpu.memory_limit_bytes != unset.memory_limit_bytes) {
    flags.push_back("--gpu_memory_limit_mb");
  }
  if (gpu.virtual_devices != unset.virtual_devices) {
    flags.push_back("--gpu_virtual_devices");
  }
  if (gpu.library_path != unset.library_path) {
    flags.push_back("--gpu_library_path");
  }
  if (flags.empty() || IsLinked(kCudaBackend)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      absl::StrJoin(flags, ", "), ": ", kNoCuda, ", and has no GPU to use"));
}

std::string DescribeDevices(const GpuOptions& gpu) {
  std::string text;
  for (const std::string& backend : BackendRegistry::Names()) {
    absl::StrAppend(&text, backend, "\n");
    for (const std::string& run :
         Runs(DevicesOf(backend, gpu), /*names_only=*/false)) {
      absl::StrAppend(&text, "  ", run, "\n");
    }
  }
  if (!IsLinked(kCudaBackend)) {
    absl::StrAppend(&text, kCudaBackend, "\n  none: ", kNoCuda, "\n");
  }
  return text;
}

}  // namespace muster
