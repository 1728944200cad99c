#include "worker/backend/device_name.h"

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "worker/backend/backend.h"

namespace muster {
namespace {

constexpr absl::string_view kCuda = "cuda";
// TensorFlow's, before the kind of a device.
constexpr absl::string_view kDevicePrefix = "device:";

}  // namespace

std::string BackendOfDevice(absl::string_view device) {
  return std::string(device.substr(0, device.find(':')));
}

int IndexOfDevice(absl::string_view device) {
  const size_t colon = device.find(':');
  int index = -1;
  const bool is_number = colon != absl::string_view::npos &&
                         absl::SimpleAtoi(device.substr(colon + 1), &index);
  // One name a device: not "cpu:01".
  const bool is_canonical =
      is_number && absl::StrCat(index) == device.substr(colon + 1);
  return is_canonical ? index : -1;
}

std::string CanonicalDevice(absl::string_view text) {
  absl::string_view name = text;
  absl::ConsumePrefix(&name, "/");
  if (absl::StartsWithIgnoreCase(name, kDevicePrefix)) {
    name.remove_prefix(kDevicePrefix.size());
  }
  const std::string lower = absl::AsciiStrToLower(name);
  const std::string kind = BackendOfDevice(lower);
  const std::string canonical =
      absl::StrCat(kind == "gpu" ? kCuda : kind, lower.substr(kind.size()));
  const bool is_backend =
      absl::c_linear_search(BackendRegistry::Names(), canonical) ||
      canonical == kCuda;
  return is_backend || IndexOfDevice(canonical) >= 0 ? canonical
                                                     : std::string(text);
}

}  // namespace muster
