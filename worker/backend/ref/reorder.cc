#include <cstring>

#include "worker/backend/ref/ref_primitives.h"

namespace muster {
namespace {

// Everything is row-major here, so a reorder is a copy.
class Reorder : public Primitive {
 public:
  explicit Reorder(const MemoryLayout& layout) {
    Take(Operand::kSrc, layout);
    Take(Operand::kDst, layout);
  }

 private:
  absl::Status Run(const Operands& operands) override {
    std::memcpy(operands.Get(Operand::kDst), operands.Get(Operand::kSrc),
                layout(Operand::kSrc).size_bytes);
    return absl::OkStatus();
  }
};

}  // namespace

template <typename T>
RefPrimitive MakeRefReorder(const Shape& shape) {
  return std::make_unique<Reorder>(RefLayout<T>(shape));
}

template RefPrimitive MakeRefReorder<float>(const Shape&);
template RefPrimitive MakeRefReorder<double>(const Shape&);

}  // namespace muster
