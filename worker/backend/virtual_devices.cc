#include "worker/backend/virtual_devices.h"

#include <algorithm>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"

namespace muster {
namespace {

constexpr int kLeastDevices = 8;

}  // namespace

std::vector<Device> VirtualDevices(absl::string_view backend,
                                   absl::string_view description) {
  const int cores = static_cast<int>(std::thread::hardware_concurrency());
  std::vector<Device> devices;
  for (int i = 0; i < std::max(cores, kLeastDevices); ++i) {
    devices.push_back(
        {absl::StrCat(backend, ":", i), std::string(description), ""});
  }
  return devices;
}

}  // namespace muster
