#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/worker/backend/ref/ref_primitive.h"

namespace muster {
namespace {

// The part of a window that lies on the source, for one dst element.
struct Region {
  int64_t dst;                       // index of the dst element
  int64_t origin;                    // index of src[n, c, 0, 0]
  int64_t top, bottom, left, right;  // half-open, inside src
};

// Calls visit(region) for every element of dst, in row-major order.
template <typename Visit>
void ForEachRegion(const PoolDesc& d, Visit visit) {
  const WindowDesc& w = d.window;
  int64_t dst = 0;
  for (int64_t plane = 0; plane < d.batch * d.channels; ++plane)
    for (int64_t y = 0; y < w.dst_h(d.height); ++y)
      for (int64_t x = 0; x < w.dst_w(d.width); ++x) {
        const int64_t top = y * w.stride_h - w.pad_top;
        const int64_t left = x * w.stride_w - w.pad_left;
        visit(Region{
            dst++, plane * d.height * d.width, std::max<int64_t>(top, 0),
            std::min(top + w.kernel_h, d.height), std::max<int64_t>(left, 0),
            std::min(left + w.kernel_w, d.width)});
      }
}

// Calls visit(src index) for every src element of the region.
template <typename Visit>
void ForEachSrc(const PoolDesc& d, const Region& region, Visit visit) {
  for (int64_t y = region.top; y < region.bottom; ++y)
    for (int64_t x = region.left; x < region.right; ++x)
      visit(region.origin + y * d.width + x);
}

int64_t Area(const Region& region) {
  return (region.bottom - region.top) * (region.right - region.left);
}

// In the workspace: no source gets the gradient, since ReLU cut them all.
constexpr int64_t kNone = -1;

// For max, the workspace holds the src index of each maximum.
MemoryLayout WorkspaceLayout(const PoolDesc& desc) {
  return MemoryLayout::RowMajor(INT64, desc.dst_shape());
}

template <typename T>
class PoolForward : public Primitive {
 public:
  explicit PoolForward(const PoolDesc& desc)
      : desc_(desc),
        keeps_(desc.kind == PoolKind::kMax && desc.phase == Phase::kTraining) {
    Take(Operand::kSrc, RefLayout<T>(desc.src_shape()));
    Take(Operand::kDst, RefLayout<T>(desc.dst_shape()));
    if (keeps_) Take(Operand::kWorkspace, WorkspaceLayout(desc));
  }

 private:
  absl::Status Run(const Operands& operands) override {
    const T* src = operands.As<const T>(Operand::kSrc);
    T* dst = operands.As<T>(Operand::kDst);
    int64_t* workspace = operands.As<int64_t>(Operand::kWorkspace);
    ForEachRegion(desc_, [&](const Region& region) {
      if (desc_.kind == PoolKind::kAverage) {
        T sum = 0;
        ForEachSrc(desc_, region, [&](int64_t i) { sum += src[i]; });
        dst[region.dst] = sum / Area(region);
        return;
      }
      T largest =
          desc_.relu_before ? T{0} : -std::numeric_limits<T>::infinity();
      int64_t argmax = kNone;
      ForEachSrc(desc_, region, [&](int64_t i) {
        // The first NaN stays.
        if (src[i] <= largest || std::isnan(largest)) return;
        largest = src[i];
        argmax = i;
      });
      dst[region.dst] = largest;
      if (keeps_) workspace[region.dst] = argmax;
    });
    return absl::OkStatus();
  }

  const PoolDesc desc_;
  const bool keeps_;
};

template <typename T>
class PoolBackward : public Primitive {
 public:
  explicit PoolBackward(const PoolDesc& desc) : desc_(desc) {
    Take(Operand::kDiffDst, RefLayout<T>(desc.dst_shape()));
    Take(Operand::kDiffSrc, RefLayout<T>(desc.src_shape()));
    if (desc.kind == PoolKind::kMax) {
      Take(Operand::kWorkspace, WorkspaceLayout(desc));
    }
  }

 private:
  absl::Status Run(const Operands& operands) override {
    const T* diff_dst = operands.As<const T>(Operand::kDiffDst);
    T* diff_src = operands.As<T>(Operand::kDiffSrc);
    const int64_t* workspace = operands.As<const int64_t>(Operand::kWorkspace);
    std::fill_n(diff_src, desc_.src_shape().num_elements(), T{0});
    ForEachRegion(desc_, [&](const Region& region) {
      const T diff = diff_dst[region.dst];
      if (desc_.kind == PoolKind::kAverage) {
        const T share = diff / Area(region);
        ForEachSrc(desc_, region, [&](int64_t i) { diff_src[i] += share; });
      } else if (workspace[region.dst] != kNone) {
        diff_src[workspace[region.dst]] += diff;
      }
    });
    return absl::OkStatus();
  }

  const PoolDesc desc_;
};

[[maybe_unused]] const bool kRegistered =
    RegisterRef<PoolDesc, PoolForward>(Pass::kForward) &&
    RegisterRef<PoolDesc, PoolBackward>(Pass::kBackward);

}  // namespace
}  // namespace muster
