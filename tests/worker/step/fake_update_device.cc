// FakeDevices as a backend, each with another order of its work.
#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "tests/worker/backend/fake_device.h"
#include "tests/worker/step/update_device.h"
#include "worker/backend/backend.h"

namespace muster {

const char kUpdateDevice[] = "fake:0";

namespace {

absl::StatusOr<std::unique_ptr<Backend>> Create(const BackendOptions& options) {
  static std::atomic<uint64_t> next_seed = 1;
  auto inner = CreateBackend("ref", options);
  if (!inner.ok()) return inner.status();
  return std::make_unique<FakeDevice>(*std::move(inner), next_seed++);
}

std::vector<Device> List(const GpuOptions&) {
  return {{"fake:0", "not there", ""}};
}

[[maybe_unused]] const bool kRegistered =
    BackendRegistry::Register("fake", {&Create, &List});

}  // namespace
}  // namespace muster
