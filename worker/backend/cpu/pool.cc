#include <algorithm>
#include <string>
#include <utility>

#include "common/base/status_macros.h"
#include "worker/backend/cpu/cpu_primitive.h"
#include "worker/backend/cpu/cpu_threads.h"
#include "worker/backend/cpu/dnnl_layout.h"
#include "worker/backend/cpu/dnnl_pool.h"
#include "worker/backend/cpu/nan_keeping_pool.h"
#include "worker/backend/cpu/pool2x2_kernel.h"
#include "worker/backend/cpu/relu.h"
#include "worker/backend/cpu/vector_kernels.h"

namespace muster {
namespace {

// The name of our kernel.
constexpr char kDescription[] = "own 2x2 max pool";

// The channel block if our kernel fits, else 0.
int64_t KernelBlock(const PoolDesc& desc, const MemoryLayout& src) {
  const WindowDesc& w = desc.window;
  const bool fits = desc.kind == PoolKind::kMax && w.kernel_h == 2 &&
                    w.kernel_w == 2 && w.stride_h == 2 && w.stride_w == 2 &&
                    w.pad_top == 0 && w.pad_bottom == 0 && w.pad_left == 0 &&
                    w.pad_right == 0;
  return fits ? ChannelBlock(src) : 0;
}

// A division of work by planes of one channel block; fewer are not worth
// waking threads for.
constexpr int64_t kPlaneGrain = 4;

Pool2x2Shape KernelShape(const PoolDesc& desc, int64_t block) {
  return {desc.batch * ((desc.channels + block - 1) / block), desc.height,
          desc.width, block};
}

MemoryLayout KernelWorkspace(const MemoryLayout& dst) {
  return BytesLayout(dst.size_bytes / static_cast<int64_t>(sizeof(float)));
}

class Pool2x2Forward : public Primitive {
 public:
  Pool2x2Forward(const CpuContext& context, const PoolDesc& desc, int64_t block)
      : threads_(context.threads),
        relu_(desc.relu_before),
        shape_(KernelShape(desc, block)) {
    const MemoryLayout dst = ChannelBlockedLayout(desc.dst_shape(), block);
    Take(Operand::kSrc, ChannelBlockedLayout(desc.src_shape(), block));
    Take(Operand::kDst, dst);
    if (desc.phase == Phase::kTraining) {
      Take(Operand::kWorkspace, KernelWorkspace(dst));
    }
  }

  std::string description() const override { return kDescription; }

 private:
  absl::Status Run(const Operands& operands) override {
    uint8_t* workspace = takes(Operand::kWorkspace)
                             ? operands.As<uint8_t>(Operand::kWorkspace)
                             : nullptr;
    ParallelFor(
        threads_, shape_.planes, kPlaneGrain, [&](int64_t begin, int64_t end) {
          MaxPool2x2Forward(shape_, relu_, begin, end,
                            operands.As<const float>(Operand::kSrc),
                            operands.As<float>(Operand::kDst), workspace);
        });
    return absl::OkStatus();
  }

  const int threads_;
  const bool relu_;
  const Pool2x2Shape shape_;
};

class Pool2x2Backward : public Primitive {
 public:
  Pool2x2Backward(const CpuContext& context, const PoolDesc& desc,
                  int64_t block)
      : threads_(context.threads), shape_(KernelShape(desc, block)) {
    const MemoryLayout dst = ChannelBlockedLayout(desc.dst_shape(), block);
    Take(Operand::kDiffDst, dst);
    Take(Operand::kDiffSrc, ChannelBlockedLayout(desc.src_shape(), block));
    Take(Operand::kWorkspace, KernelWorkspace(dst));
  }

  std::string description() const override { return kDescription; }

 private:
  absl::Status Run(const Operands& operands) override {
    ParallelFor(
        threads_, shape_.planes, kPlaneGrain, [&](int64_t begin, int64_t end) {
          MaxPool2x2Backward(shape_, begin, end,
                             operands.As<const float>(Operand::kDiffDst),
                             operands.As<const uint8_t>(Operand::kWorkspace),
                             operands.As<float>(Operand::kDiffSrc));
        });
    return absl::OkStatus();
  }

  const int threads_;
  const Pool2x2Shape shape_;
};

// The gradient passes where dst > 0, then goes back through the pool. Scratch:
// the cut diff_dst, then the pool's own.
class ReluPoolBackward : public Primitive {
 public:
  explicit ReluPoolBackward(std::unique_ptr<Primitive> pool)
      : pool_(std::move(pool)) {
    const MemoryLayout diff_dst = pool_->layout(Operand::kDiffDst);
    Take(Operand::kDiffDst, diff_dst);
    Take(Operand::kDst, diff_dst);
    Take(Operand::kDiffSrc, pool_->layout(Operand::kDiffSrc));
    Take(Operand::kWorkspace, pool_->layout(Operand::kWorkspace));
    cut_bytes_ =
        (diff_dst.size_bytes + kAlignment - 1) / kAlignment * kAlignment;
    const int64_t pool_scratch =
        pool_->takes(Operand::kScratch)
            ? pool_->layout(Operand::kScratch).size_bytes
            : 0;
    Take(Operand::kScratch, BytesLayout(cut_bytes_ + pool_scratch));
  }

  std::string description() const override { return pool_->description(); }

 private:
  static constexpr int64_t kAlignment = 64;

  absl::Status Run(const Operands& operands) override {
    char* const scratch = operands.As<char>(Operand::kScratch);
    float* const cut = reinterpret_cast<float*>(scratch);
    ReluBackward(operands.As<const float>(Operand::kDst),
                 operands.As<const float>(Operand::kDiffDst), cut,
                 layout(Operand::kDiffDst).size_bytes /
                     static_cast<int64_t>(sizeof(float)));
    inner_.Set(Operand::kDiffDst, cut);
    inner_.Set(Operand::kDiffSrc, operands.Get(Operand::kDiffSrc));
    inner_.Set(Operand::kWorkspace, operands.Get(Operand::kWorkspace));
    inner_.Set(Operand::kScratch, scratch + cut_bytes_);
    return pool_->Execute(inner_);
  }

  const std::unique_ptr<Primitive> pool_;
  int64_t cut_bytes_ = 0;
  Operands inner_;
};

PoolDesc WithoutRelu(PoolDesc desc) {
  desc.relu_before = false;
  return desc;
}

// Max pools 2x2 with stride 2 in nChw8c and nChw16c are our own kernel; the
// others are oneDNN's, with ReLU beside it where desc says so.
CpuPrimitive MakeForward(const CpuContext& context, const PoolDesc& desc,
                         const MemoryLayout& src) {
  if (const int64_t block = KernelBlock(desc, src); block != 0) {
    return std::make_unique<Pool2x2Forward>(context, desc, block);
  }
  ASSIGN_OR_RETURN(auto pool,
                   MakeDnnlPoolForward(context, WithoutRelu(desc), src));
  if (desc.kind == PoolKind::kMax) {
    ASSIGN_OR_RETURN(pool, KeepingNan(context.threads, desc, std::move(pool)));
  }
  if (!desc.relu_before) return pool;
  // max(relu(x)) = relu(max(x)), so ReLU runs over the smaller dst.
  return WithRelu(context.threads, std::move(pool));
}

CpuPrimitive MakeBackward(const CpuContext& context, const PoolDesc& desc,
                          const MemoryLayout& src) {
  if (const int64_t block = KernelBlock(desc, src); block != 0) {
    return std::make_unique<Pool2x2Backward>(context, desc, block);
  }
  ASSIGN_OR_RETURN(auto pool,
                   MakeDnnlPoolBackward(context, WithoutRelu(desc), src));
  if (!desc.relu_before) return pool;
  return std::make_unique<ReluPoolBackward>(std::move(pool));
}

[[maybe_unused]] const bool kRegistered =
    CpuPrimitives::Register<PoolDesc>(Pass::kForward, &MakeForward) &&
    CpuPrimitives::Register<PoolDesc>(Pass::kBackward, &MakeBackward);

}  // namespace
}  // namespace muster
