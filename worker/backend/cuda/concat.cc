#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "worker/backend/cuda/cuda_layout.h"
#include "worker/backend/cuda/cuda_primitive.h"
#include "worker/backend/cuda/strided_copy_kernel.h"

namespace muster {
namespace {

// The layouts of all operands. dst is [outer, run] in memory, and so is each
// source, whose runs lie one after the other in dst's.
struct ConcatLayouts {
  std::vector<MemoryLayout> srcs;
  MemoryLayout dst;
  int64_t outer = 1;
};

bool AreNhwc(const ConcatDesc& desc, absl::Span<const MemoryLayout> srcs) {
  if (!std::any_of(srcs.begin(), srcs.end(), IsNhwc)) return false;
  for (size_t i = 0; i < srcs.size(); ++i) {
    // With one channel it is row-major, too.
    if (srcs[i] != NhwcLayout(desc.srcs[i])) return false;
  }
  return true;
}

ConcatLayouts LayoutsOf(const ConcatDesc& desc,
                        absl::Span<const MemoryLayout> srcs) {
  const Shape& first = desc.srcs[0];
  ConcatLayouts layouts;
  layouts.outer = first.dim(0);
  if (AreNhwc(desc, srcs)) {
    layouts.outer *= first.dim(2) * first.dim(3);
    layouts.srcs.assign(srcs.begin(), srcs.end());
    layouts.dst = NhwcLayout(desc.dst_shape());
    return layouts;
  }
  for (const Shape& src : desc.srcs) {
    layouts.srcs.push_back(MemoryLayout::RowMajor(FLOAT32, src));
  }
  layouts.dst = MemoryLayout::RowMajor(FLOAT32, desc.dst_shape());
  return layouts;
}

enum class Direction { kJoin, kTakeApart };

// One source's part of the copy.
struct Part {
  StridedCopyShape shape;
  int64_t offset;  // of its first run in dst
};

std::vector<Part> PartsOf(const ConcatLayouts& layouts, Direction direction) {
  const int64_t dst_run = layouts.dst.shape.num_elements() / layouts.outer;
  std::vector<Part> parts;
  int64_t offset = 0;
  for (const MemoryLayout& src : layouts.srcs) {
    const int64_t run = src.shape.num_elements() / layouts.outer;
    const Index4 sizes = {layouts.outer, run, 1, 1};
    const Index4 in_src = {run, 1, 1, 1};
    const Index4 in_dst = {dst_run, 1, 1, 1};
    parts.push_back({direction == Direction::kJoin
                         ? StridedCopyShape{sizes, in_dst, sizes, in_src}
                         : StridedCopyShape{sizes, in_src, sizes, in_dst},
                     offset});
    offset += run;
  }
  return parts;
}

class CudaConcatForward : public CudaPrimitive {
 public:
  CudaConcatForward(CudaDevice* device, const ConcatLayouts& layouts)
      : CudaPrimitive(
            device, absl::StrCat("concat forward to ", layouts.dst.ToString())),
        parts_(PartsOf(layouts, Direction::kJoin)) {
    for (const MemoryLayout& src : layouts.srcs) Take(Operand::kSrc, src);
    Take(Operand::kDst, layouts.dst);
  }

 private:
  absl::Status Run(const Operands& operands) override {
    float* const dst = operands.As<float>(Operand::kDst);
    for (int i = 0; i < static_cast<int>(parts_.size()); ++i) {
      RETURN_IF_ERROR(Check(StridedCopy(
          kernels(), parts_[i].shape,
          operands.As<const float>(Operand::kSrc, i), dst + parts_[i].offset)));
    }
    return absl::OkStatus();
  }

  const std::vector<Part> parts_;
};

class CudaConcatBackward : public CudaPrimitive {
 public:
  CudaConcatBackward(CudaDevice* device, const ConcatLayouts& layouts)
      : CudaPrimitive(device, absl::StrCat("concat backward of ",
                                           layouts.dst.ToString())),
        parts_(PartsOf(layouts, Direction::kTakeApart)) {
    Take(Operand::kDiffDst, layouts.dst);
    for (const MemoryLayout& src : layouts.srcs) Take(Operand::kDiffSrc, src);
  }

 private:
  absl::Status Run(const Operands& operands) override {
    const float* const diff_dst = operands.As<const float>(Operand::kDiffDst);
    for (int i = 0; i < static_cast<int>(parts_.size()); ++i) {
      RETURN_IF_ERROR(Check(
          StridedCopy(kernels(), parts_[i].shape, diff_dst + parts_[i].offset,
                      operands.As<float>(Operand::kDiffSrc, i))));
    }
    return absl::OkStatus();
  }

  const std::vector<Part> parts_;
};

MadePrimitive MakeForward(CudaDevice* device, const ConcatDesc& desc,
                          absl::Span<const MemoryLayout> srcs) {
  return std::make_unique<CudaConcatForward>(device, LayoutsOf(desc, srcs));
}

MadePrimitive MakeBackward(CudaDevice* device, const ConcatDesc& desc,
                           absl::Span<const MemoryLayout> srcs) {
  return std::make_unique<CudaConcatBackward>(device, LayoutsOf(desc, srcs));
}

[[maybe_unused]] const bool kRegistered =
    CudaPrimitives::Register<ConcatDesc>(Pass::kForward, &MakeForward) &&
    CudaPrimitives::Register<ConcatDesc>(Pass::kBackward, &MakeBackward);

}  // namespace
}  // namespace muster
