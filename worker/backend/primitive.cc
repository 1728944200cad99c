#include "worker/backend/primitive.h"

#include "absl/strings/str_cat.h"

namespace muster {

const char* OperandName(Operand operand) {
  static constexpr const char* kNames[kNumOperands] = {
      "src",      "weights",      "bias",      "dst",
      "diff_src", "diff_weights", "diff_bias", "diff_dst",
      "mean",     "variance",     "labels",    "row_weights",
      "loss",     "correct",      "workspace", "scratch"};
  return kNames[static_cast<int>(operand)];
}

absl::Status Primitive::Execute(const Operands& operands) {
  for (int i = 0; i < kNumOperands; ++i) {
    const Operand operand = static_cast<Operand>(i);
    const int count = static_cast<int>(layouts_[i].size());
    for (int j = 0; j < count; ++j) {
      if (operands.Get(operand, j) != nullptr) continue;
      if (layouts_[i][j].size_bytes == 0) continue;
      return absl::InternalError(absl::StrCat(
          "execute a primitive: operand ", OperandName(operand), "[", j,
          "] is not set; it takes ", layouts_[i][j].ToString()));
    }
  }
  return Run(operands);
}

}  // namespace muster
