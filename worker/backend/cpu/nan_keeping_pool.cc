#include "worker/backend/cpu/nan_keeping_pool.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>

#include "absl/types/span.h"
#include "common/base/finite.h"
#include "common/base/status_macros.h"
#include "worker/backend/cpu/cpu_threads.h"
#include "worker/backend/cpu/dnnl_layout.h"

namespace muster {
namespace {

// Elements that are worth a thread.
constexpr int64_t kGrain = 16384;

bool AllFinite(int threads, const MemoryLayout& layout, const float* values) {
  const int64_t floats =
      layout.size_bytes / static_cast<int64_t>(sizeof(float));
  std::atomic<bool> finite{true};
  ParallelFor(threads, floats, kGrain, [&](int64_t begin, int64_t end) {
    const absl::Span<const float> part(values + begin, end - begin);
    if (FirstNonFinite(part) >= 0) finite.store(false);
  });
  return finite.load();
}

class NanKeepingPool : public Primitive {
 public:
  NanKeepingPool(int threads, const PoolDesc& desc,
                 const dnnl::memory::desc& src, const dnnl::memory::desc& dst,
                 std::unique_ptr<Primitive> pool)
      : threads_(threads),
        desc_(desc),
        src_(src),
        dst_(dst),
        pool_(std::move(pool)) {
    for (const Operand operand : {Operand::kSrc, Operand::kDst,
                                  Operand::kWorkspace, Operand::kScratch}) {
      if (pool_->takes(operand)) Take(operand, pool_->layout(operand));
    }
  }

  std::string description() const override { return pool_->description(); }

 private:
  absl::Status Run(const Operands& operands) override {
    RETURN_IF_ERROR(pool_->Execute(operands));
    const float* const src = operands.As<const float>(Operand::kSrc);
    if (AllFinite(threads_, layout(Operand::kSrc), src)) {
      return absl::OkStatus();
    }
    float* const dst = operands.As<float>(Operand::kDst);
    ParallelFor(threads_, desc_.batch * desc_.channels, /*grain=*/1,
                [&](int64_t begin, int64_t end) {
                  for (; begin < end; ++begin) WriteNans(begin, src, dst);
                });
    return absl::OkStatus();
  }

  // In one channel of one image.
  void WriteNans(int64_t plane, const float* src, float* dst) const {
    const int64_t image = plane / desc_.channels;
    const int64_t channel = plane % desc_.channels;
    const WindowDesc& w = desc_.window;
    for (int64_t y = 0; y < w.dst_h(desc_.height); ++y) {
      for (int64_t x = 0; x < w.dst_w(desc_.width); ++x) {
        if (!HasNan(image, channel, y, x, src)) continue;
        dst[OffsetOf(dst_, {image, channel, y, x})] =
            std::numeric_limits<float>::quiet_NaN();
      }
    }
  }

  // Under the window of dst's (y, x).
  bool HasNan(int64_t image, int64_t channel, int64_t y, int64_t x,
              const float* src) const {
    const WindowDesc& w = desc_.window;
    const int64_t top = y * w.stride_h - w.pad_top;
    const int64_t left = x * w.stride_w - w.pad_left;
    const int64_t bottom = std::min(top + w.kernel_h, desc_.height);
    const int64_t right = std::min(left + w.kernel_w, desc_.width);
    for (int64_t row = std::max<int64_t>(top, 0); row < bottom; ++row) {
      for (int64_t column = std::max<int64_t>(left, 0); column < right;
           ++column) {
        const int64_t at = OffsetOf(src_, {image, channel, row, column});
        if (std::isnan(src[at])) return true;
      }
    }
    return false;
  }

  const int threads_;
  const PoolDesc desc_;
  const dnnl::memory::desc src_;
  const dnnl::memory::desc dst_;
  const std::unique_ptr<Primitive> pool_;
};

}  // namespace

CpuPrimitive KeepingNan(int threads, const PoolDesc& desc,
                        std::unique_ptr<Primitive> pool) {
  ASSIGN_OR_RETURN(const dnnl::memory::desc src,
                   DnnlDescOf(pool->layout(Operand::kSrc)));
  ASSIGN_OR_RETURN(const dnnl::memory::desc dst,
                   DnnlDescOf(pool->layout(Operand::kDst)));
  return std::make_unique<NanKeepingPool>(threads, desc, src, dst,
                                          std::move(pool));
}

}  // namespace muster
