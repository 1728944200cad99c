#include "worker/backend/cuda/update_rule.h"

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <memory>
#include <variant>

#include "absl/strings/str_cat.h"
#include "worker/backend/cuda/update_rule_kernel.h"

namespace muster {
namespace {

class CudaRule : public DeviceRule {
 public:
  CudaRule(CudaDevice* device, const UpdateRule* rule)
      : device_(device), rule_(rule) {}

  absl::Status Apply(const BlockUpdate& update, const float* gradient,
                     float* parameter, absl::Span<float* const> slots,
                     int64_t n) override {
    assert(slots.size() <= UpdatedElements::kMostSlots);
    UpdatedElements elements;
    elements.gradient = gradient;
    elements.parameter = parameter;
    std::copy(slots.begin(), slots.end(), elements.slots);
    elements.n = n;
    return UpdateElements(device_->kernels(), rule_->ConstantsAt(update),
                          elements);
  }

  absl::Status CountNonFinite(const float* values, int64_t n,
                              int32_t* counts) override {
    return muster::CountNonFinite(device_->kernels(), values, n, counts);
  }
  int64_t num_counts() const override { return kNonFiniteCounts; }

 private:
  CudaDevice* const device_;
  const UpdateRule* const rule_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<DeviceRule>> MakeCudaRule(
    CudaDevice* device, const UpdateRule* rule) {
  if (std::holds_alternative<std::monostate>(
          rule->ConstantsAt(BlockUpdate()))) {
    return absl::UnimplementedError(
        absl::StrCat("update on ", device->name(),
                     ": there is no kernel for the optimizer's rule"));
  }
  return std::make_unique<CudaRule>(device, rule);
}

}  // namespace muster
