#include "tests/worker/backend/ref/ref_primitive.h"

namespace muster {
namespace {

// Calls visit(source, src index, dst index) for every element of dst, in the
// order of dst's memory.
template <typename Visit>
void ForEachElement(const ConcatDesc& desc, Visit visit) {
  int64_t to = 0;
  for (int64_t n = 0; n < desc.srcs[0].dim(0); ++n)
    for (int s = 0; s < static_cast<int>(desc.srcs.size()); ++s) {
      const int64_t row = desc.srcs[s].num_elements() / desc.srcs[s].dim(0);
      for (int64_t i = 0; i < row; ++i) visit(s, n * row + i, to++);
    }
}

template <typename T>
class ConcatForward : public Primitive {
 public:
  explicit ConcatForward(const ConcatDesc& desc) : desc_(desc) {
    for (const Shape& src : desc.srcs) Take(Operand::kSrc, RefLayout<T>(src));
    Take(Operand::kDst, RefLayout<T>(desc.dst_shape()));
  }

 private:
  absl::Status Run(const Operands& operands) override {
    T* dst = operands.As<T>(Operand::kDst);
    ForEachElement(desc_, [&](int source, int64_t from, int64_t to) {
      dst[to] = operands.As<const T>(Operand::kSrc, source)[from];
    });
    return absl::OkStatus();
  }

  const ConcatDesc desc_;
};

template <typename T>
class ConcatBackward : public Primitive {
 public:
  explicit ConcatBackward(const ConcatDesc& desc) : desc_(desc) {
    Take(Operand::kDiffDst, RefLayout<T>(desc.dst_shape()));
    for (const Shape& src : desc.srcs) {
      Take(Operand::kDiffSrc, RefLayout<T>(src));
    }
  }

 private:
  absl::Status Run(const Operands& operands) override {
    const T* diff_dst = operands.As<const T>(Operand::kDiffDst);
    ForEachElement(desc_, [&](int source, int64_t from, int64_t to) {
      operands.As<T>(Operand::kDiffSrc, source)[from] = diff_dst[to];
    });
    return absl::OkStatus();
  }

  const ConcatDesc desc_;
};

[[maybe_unused]] const bool kRegistered =
    RegisterRef<ConcatDesc, ConcatForward>(Pass::kForward) &&
    RegisterRef<ConcatDesc, ConcatBackward>(Pass::kBackward);

}  // namespace
}  // namespace muster
