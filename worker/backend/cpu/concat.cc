#include <cstring>
#include <vector>

#include "worker/backend/cpu/cpu_primitive.h"
#include "worker/backend/cpu/dnnl_layout.h"

namespace muster {
namespace {

// The block of channels in which all sources lie whole, or 0: row-major then.
// In both cases one image of a source is one run of bytes of dst, and concat
// is a copy of runs.
int64_t CommonBlock(const ConcatDesc& desc,
                    absl::Span<const MemoryLayout> srcs) {
  const int64_t block = ChannelBlock(srcs[0]);
  if (block == 0) return 0;
  for (size_t i = 0; i < srcs.size(); ++i) {
    if (ChannelBlock(srcs[i]) != block) return 0;
    if (desc.srcs[i].dim(1) % block != 0) return 0;
  }
  return block;
}

MemoryLayout LayoutFor(const Shape& shape, int64_t block) {
  return block == 0 ? MemoryLayout::RowMajor(FLOAT32, shape)
                    : ChannelBlockedLayout(shape, block);
}

// Bytes of one image of each source.
std::vector<int64_t> RunsOf(const ConcatDesc& desc) {
  std::vector<int64_t> runs;
  for (const Shape& src : desc.srcs) {
    runs.push_back(src.num_elements() / src.dim(0) *
                   static_cast<int64_t>(sizeof(float)));
  }
  return runs;
}

class ConcatForward : public Primitive {
 public:
  ConcatForward(const ConcatDesc& desc, int64_t block)
      : images_(desc.srcs[0].dim(0)), runs_(RunsOf(desc)) {
    for (const Shape& src : desc.srcs) {
      Take(Operand::kSrc, LayoutFor(src, block));
    }
    Take(Operand::kDst, LayoutFor(desc.dst_shape(), block));
  }

 private:
  absl::Status Run(const Operands& operands) override {
    char* dst = operands.As<char>(Operand::kDst);
    for (int64_t n = 0; n < images_; ++n) {
      for (int i = 0; i < static_cast<int>(runs_.size()); ++i) {
        std::memcpy(dst,
                    operands.As<const char>(Operand::kSrc, i) + n * runs_[i],
                    runs_[i]);
        dst += runs_[i];
      }
    }
    return absl::OkStatus();
  }

  const int64_t images_;
  const std::vector<int64_t> runs_;
};

class ConcatBackward : public Primitive {
 public:
  ConcatBackward(const ConcatDesc& desc, int64_t block)
      : images_(desc.srcs[0].dim(0)), runs_(RunsOf(desc)) {
    Take(Operand::kDiffDst, LayoutFor(desc.dst_shape(), block));
    for (const Shape& src : desc.srcs) {
      Take(Operand::kDiffSrc, LayoutFor(src, block));
    }
  }

 private:
  absl::Status Run(const Operands& operands) override {
    const char* diff_dst = operands.As<const char>(Operand::kDiffDst);
    for (int64_t n = 0; n < images_; ++n) {
      for (int i = 0; i < static_cast<int>(runs_.size()); ++i) {
        std::memcpy(operands.As<char>(Operand::kDiffSrc, i) + n * runs_[i],
                    diff_dst, runs_[i]);
        diff_dst += runs_[i];
      }
    }
    return absl::OkStatus();
  }

  const int64_t images_;
  const std::vector<int64_t> runs_;
};

CpuPrimitive MakeForward(const CpuContext&, const ConcatDesc& desc,
                         absl::Span<const MemoryLayout> srcs) {
  return std::make_unique<ConcatForward>(desc, CommonBlock(desc, srcs));
}

CpuPrimitive MakeBackward(const CpuContext&, const ConcatDesc& desc,
                          absl::Span<const MemoryLayout> srcs) {
  return std::make_unique<ConcatBackward>(desc, CommonBlock(desc, srcs));
}

[[maybe_unused]] const bool kRegistered =
    CpuPrimitives::Register<ConcatDesc>(Pass::kForward, &MakeForward) &&
    CpuPrimitives::Register<ConcatDesc>(Pass::kBackward, &MakeBackward);

}  // namespace
}  // namespace muster
