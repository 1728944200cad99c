#ifndef TESTS_WORKER_BACKEND_FAKE_DEVICE_H_
#define TESTS_WORKER_BACKEND_FAKE_DEVICE_H_

#include <cstdint>
#include <memory>
#include <utility>

#include "tests/worker/backend/fake_streams.h"
#include "worker/backend/backend.h"

namespace muster {

// A backend with streams whose primitives are those of a backend without: they
// are executed when FakeStreams does the work, with the operands as they were
// when it was put there, but for the seed of dropout, which is read from
// device_seed then. An operand that is not memory of the device is refused.
class FakeDevice : public Backend {
 public:
  // `seed` is that of FakeStreams.
  FakeDevice(std::unique_ptr<Backend> inner, uint64_t seed)
      : inner_(std::move(inner)), streams_(seed) {}

  absl::string_view name() const override { return "fake_device"; }
  DataType dtype() const override { return inner_->dtype(); }
  FakeStreams* streams() override { return &streams_; }
  // A FakeMean. REQUIRES: each member is a FakeDevice.
  absl::StatusOr<std::unique_ptr<DeviceMean>> CreateMean(
      absl::Span<Backend* const> members) override;

  // The rule itself, in the work.
  absl::StatusOr<std::unique_ptr<DeviceRule>> CreateRule(
      const UpdateRule* rule) override;

  Created Create(const Operation& operation, Pass pass,
                 absl::Span<const MemoryLayout> layouts) override;

 private:
  const std::unique_ptr<Backend> inner_;
  FakeStreams streams_;
};

}  // namespace muster

#endif  // TESTS_WORKER_BACKEND_FAKE_DEVICE_H_
