#include "tests/worker/backend/fake_device.h"

#include <cmath>
#include <cstdint>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "tests/testing/allocation_pause.h"
#include "tests/worker/backend/fake_mean.h"

namespace muster {
namespace {

class FakeDevicePrimitive : public Primitive {
 public:
  FakeDevicePrimitive(std::unique_ptr<Primitive> inner, bool is_seeded,
                      FakeStreams* streams)
      : inner_(std::move(inner)), is_seeded_(is_seeded), streams_(streams) {
    for (int i = 0; i < kNumOperands; ++i) {
      const auto operand = static_cast<Operand>(i);
      for (const MemoryLayout& layout : inner_->layouts(operand)) {
        Take(operand, layout);
      }
    }
    if (inner_->in_place()) AllowInPlace();
  }

 private:
  absl::Status Run(const Operands& operands) override {
    const AllocationPause pause;
    RETURN_IF_ERROR(CheckMemory(operands));
    return streams_->Compute([this, operands] { return RunInner(operands); });
  }

  absl::Status CheckMemory(const Operands& operands) const {
    for (int i = 0; i < kNumOperands; ++i) {
      const auto operand = static_cast<Operand>(i);
      const absl::Span<const MemoryLayout> taken = layouts(operand);
      for (int j = 0; j < static_cast<int>(taken.size()); ++j) {
        RETURN_IF_ERROR(Annotate(
            streams_->CheckDevice(operands.Get(operand, j),
                                  taken[j].size_bytes),
            absl::StrCat("operand ", OperandName(operand), "[", j, "]")));
      }
    }
    if (!is_seeded_) return absl::OkStatus();
    return Annotate(
        streams_->CheckDevice(operands.device_seed, sizeof(uint64_t)),
        "device_seed");
  }

  // The memory may have been freed since.
  absl::Status RunInner(Operands operands) {
    RETURN_IF_ERROR(CheckMemory(operands));
    if (is_seeded_) operands.seed = *operands.device_seed;
    return inner_->Execute(operands);
  }

  const std::unique_ptr<Primitive> inner_;
  const bool is_seeded_;
  FakeStreams* const streams_;
};

// Reads and writes what is in the memory when the work is done.
class FakeDeviceRule : public DeviceRule {
 public:
  FakeDeviceRule(const UpdateRule* rule, FakeStreams* streams)
      : rule_(rule), streams_(streams) {}

  absl::Status Apply(const BlockUpdate& update, const float* gradient,
                     float* parameter, absl::Span<float* const> slots,
                     int64_t n) override {
    const AllocationPause pause;
    const std::vector<float*> kept(slots.begin(), slots.end());
    RETURN_IF_ERROR(Check(gradient, n));
    RETURN_IF_ERROR(Check(parameter, n));
    for (float* const slot : kept) RETURN_IF_ERROR(Check(slot, n));
    return streams_->Compute([=] {
      rule_->Apply(update, gradient, parameter, kept, n);
      return absl::OkStatus();
    });
  }

  absl::Status CountNonFinite(const float* values, int64_t n,
                              int32_t* counts) override {
    const AllocationPause pause;
    RETURN_IF_ERROR(Check(values, n));
    RETURN_IF_ERROR(
        streams_->CheckDevice(counts, num_counts() * sizeof(int32_t)));
    return streams_->Compute([=] {
      counts[0] = 0;
      for (int64_t i = 0; i < n; ++i) {
        if (!std::isfinite(values[i])) ++counts[0];
      }
      return absl::OkStatus();
    });
  }
  int64_t num_counts() const override { return 2; }

 private:
  absl::Status Check(const float* memory, int64_t n) const {
    return streams_->CheckDevice(memory,
                                 n * static_cast<int64_t>(sizeof(float)));
  }

  const UpdateRule* const rule_;
  FakeStreams* const streams_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<DeviceRule>> FakeDevice::CreateRule(
    const UpdateRule* rule) {
  return std::make_unique<FakeDeviceRule>(rule, &streams_);
}

absl::StatusOr<std::unique_ptr<DeviceMean>> FakeDevice::CreateMean(
    absl::Span<Backend* const> members) {
  std::vector<FakeStreams*> streams;
  for (Backend* const member : members) {
    streams.push_back(static_cast<FakeDevice*>(member)->streams());
  }
  return std::make_unique<FakeMean>(std::move(streams));
}

Backend::Created FakeDevice::Create(const Operation& operation, Pass pass,
                                    absl::Span<const MemoryLayout> layouts) {
  ASSIGN_OR_RETURN(auto inner, inner_->Create(operation, pass, layouts));
  const bool is_seeded =
      std::holds_alternative<DropoutDesc>(operation) && pass == Pass::kForward;
  return std::make_unique<FakeDevicePrimitive>(std::move(inner), is_seeded,
                                               &streams_);
}

}  // namespace muster
