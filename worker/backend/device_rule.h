#ifndef WORKER_BACKEND_DEVICE_RULE_H_
#define WORKER_BACKEND_DEVICE_RULE_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "common/optimizer/update_rule.h"

namespace muster {

// An update rule on the memory of one device. Each call puts work into kCompute
// and returns; errors are those of DeviceStreams.
class DeviceRule {
 public:
  virtual ~DeviceRule() = default;

  // As UpdateRuleOf<float>::Apply, to the bit.
  virtual absl::Status Apply(const BlockUpdate& update, const float* gradient,
                             float* parameter, absl::Span<float* const> slots,
                             int64_t n) = 0;

  // counts[0, num_counts()), zeroed before the first call, then add up to the
  // number of `values` that are NaN or infinite.
  virtual absl::Status CountNonFinite(const float* values, int64_t n,
                                      int32_t* counts) = 0;
  virtual int64_t num_counts() const = 0;
};

}  // namespace muster

#endif  // WORKER_BACKEND_DEVICE_RULE_H_
