#include "worker/backend/primitive_table.h"

#include <cstddef>
#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/tensor/dtype.h"

namespace muster {

absl::Status CheckLayouts(const Operation& operation, DataType dtype,
                          absl::Span<const MemoryLayout> layouts) {
  const LayoutShapes shapes = std::visit(
      [](const auto& desc) { return desc.layout_shapes(); }, operation);
  const absl::string_view name =
      std::visit([](const auto& desc) { return desc.kName; }, operation);
  if (shapes.empty()) return absl::OkStatus();
  if (shapes.size() != layouts.size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        name, ": wanted ", shapes.size(), " layouts, found ", layouts.size()));
  }
  for (size_t i = 0; i < shapes.size(); ++i) {
    const Shape shape = shapes[i].value_or(layouts[i].shape);
    if (layouts[i].dtype == dtype && layouts[i].shape == shape) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(name, ": wanted a layout of ", DataTypeName(dtype), " ",
                     shape.ToString(), ", found ", layouts[i].ToString()));
  }
  return absl::OkStatus();
}

}  // namespace muster
