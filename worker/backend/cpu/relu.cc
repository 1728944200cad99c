#include "worker/backend/cpu/relu.h"

#include <cstdint>
#include <string>
#include <utility>

#include "common/base/status_macros.h"
#include "worker/backend/cpu/cpu_threads.h"
#include "worker/backend/cpu/vector_kernels.h"

namespace muster {
namespace {

// Elements that are worth a thread.
constexpr int64_t kGrain = 16384;

void ApplyRelu(int threads, const MemoryLayout& layout, const float* src,
               float* dst) {
  const int64_t floats =
      layout.size_bytes / static_cast<int64_t>(sizeof(float));
  ParallelFor(threads, floats, kGrain, [&](int64_t begin, int64_t end) {
    ReluForward(src + begin, dst + begin, end - begin);
  });
}

class Relu : public Primitive {
 public:
  Relu(int threads, const MemoryLayout& layout) : threads_(threads) {
    Take(Operand::kSrc, layout);
    Take(Operand::kDst, layout);
    AllowInPlace();
  }

  std::string description() const override { return "own ReLU"; }

 private:
  absl::Status Run(const Operands& operands) override {
    ApplyRelu(threads_, layout(Operand::kDst),
              operands.As<const float>(Operand::kSrc),
              operands.As<float>(Operand::kDst));
    return absl::OkStatus();
  }

  const int threads_;
};

class ThenRelu : public Primitive {
 public:
  ThenRelu(int threads, std::unique_ptr<Primitive> primitive)
      : threads_(threads), primitive_(std::move(primitive)) {
    for (int i = 0; i < kNumOperands; ++i) {
      const Operand operand = static_cast<Operand>(i);
      if (primitive_->takes(operand)) {
        Take(operand, primitive_->layout(operand));
      }
    }
  }

  std::string description() const override {
    return primitive_->description() + ", own ReLU";
  }

 private:
  absl::Status Run(const Operands& operands) override {
    RETURN_IF_ERROR(primitive_->Execute(operands));
    float* const dst = operands.As<float>(Operand::kDst);
    ApplyRelu(threads_, layout(Operand::kDst), dst, dst);
    return absl::OkStatus();
  }

  const int threads_;
  const std::unique_ptr<Primitive> primitive_;
};

}  // namespace

std::unique_ptr<Primitive> MakeRelu(int threads, const MemoryLayout& layout) {
  return std::make_unique<Relu>(threads, layout);
}

std::unique_ptr<Primitive> WithRelu(int threads,
                                    std::unique_ptr<Primitive> primitive) {
  return std::make_unique<ThenRelu>(threads, std::move(primitive));
}

}  // namespace muster
