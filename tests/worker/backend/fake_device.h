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

  Created CreateReorder(const MemoryLayout& from,
                        const MemoryLayout& to) override;
  Created CreateConv2dForward(const Conv2dDesc& desc) override;
  Created CreateConv2dBackwardData(const Conv2dDesc& desc) override;
  Created CreateConv2dBackwardWeights(const Conv2dDesc& desc) override;
  Created CreateDenseForward(const DenseDesc& desc) override;
  Created CreateDenseBackwardData(const DenseDesc& desc) override;
  Created CreateDenseBackwardWeights(const DenseDesc& desc) override;
  Created CreateActivationForward(const ActivationDesc& desc,
                                  const MemoryLayout& src) override;
  Created CreateActivationBackward(const ActivationDesc& desc,
                                   const MemoryLayout& dst) override;
  Created CreatePoolForward(const PoolDesc& desc,
                            const MemoryLayout& src) override;
  Created CreatePoolBackward(const PoolDesc& desc,
                             const MemoryLayout& src) override;
  Created CreateDropoutForward(const DropoutDesc& desc,
                               const MemoryLayout& src) override;
  Created CreateDropoutBackward(const DropoutDesc& desc,
                                const MemoryLayout& src) override;
  Created CreateBatchNormForward(const BatchNormDesc& desc,
                                 const MemoryLayout& src) override;
  Created CreateBatchNormBackward(const BatchNormDesc& desc,
                                  const MemoryLayout& src) override;
  Created CreateAdd(const AddDesc& desc,
                    absl::Span<const MemoryLayout> srcs) override;
  Created CreateConcatForward(const ConcatDesc& desc,
                              absl::Span<const MemoryLayout> srcs) override;
  Created CreateConcatBackward(const ConcatDesc& desc,
                               absl::Span<const MemoryLayout> srcs) override;
  Created CreateSoftmaxCrossEntropy(
      const SoftmaxCrossEntropyDesc& desc) override;
  Created CreateL2Penalty(const L2PenaltyDesc& desc,
                          const MemoryLayout& weights) override;

 private:
  Created Wrap(Created inner, bool is_seeded = false);

  const std::unique_ptr<Backend> inner_;
  FakeStreams streams_;
};

}  // namespace muster

#endif  // TESTS_WORKER_BACKEND_FAKE_DEVICE_H_
