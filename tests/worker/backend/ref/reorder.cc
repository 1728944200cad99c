#include <cstring>

#include "tests/worker/backend/ref/ref_primitive.h"

namespace muster {
namespace {

// Everything is row-major here, so a reorder is a copy.
template <typename T>
class Reorder : public Primitive {
 public:
  explicit Reorder(const ReorderDesc& desc) {
    Take(Operand::kSrc, RefLayout<T>(desc.shape));
    Take(Operand::kDst, RefLayout<T>(desc.shape));
  }

 private:
  absl::Status Run(const Operands& operands) override {
    std::memcpy(operands.Get(Operand::kDst), operands.Get(Operand::kSrc),
                layout(Operand::kSrc).size_bytes);
    return absl::OkStatus();
  }
};

[[maybe_unused]] const bool kRegistered =
    RegisterRef<ReorderDesc, Reorder>(Pass::kForward);

}  // namespace
}  // namespace muster
