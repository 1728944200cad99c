#include "common/cluster/placement.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/tensor/dtype.h"
#include "common/tensor/shape.h"

namespace muster {
namespace {

absl::StatusOr<int64_t> Elements(const TensorDef& tensor) {
  const auto shape = Shape::Create(tensor.shape());
  if (!shape.ok()) return Annotate(shape.status(), tensor.name());
  return shape->num_elements();
}

absl::Status CheckCount(size_t wanted, size_t found) {
  if (wanted == found) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "a placement of ", wanted, " tensors: found ", found, " tensors placed"));
}

absl::Status CheckExtents(const TensorDef& tensor,
                          absl::Span<const TensorExtent> extents, int num_ps,
                          int64_t block_elements) {
  ASSIGN_OR_RETURN(const int64_t elements, Elements(tensor));
  // A tensor without elements has one extent, too: its ps task's.
  const int64_t shortest = elements == 0 && extents.size() == 1 ? 0 : 1;
  int64_t covered = 0;
  for (const TensorExtent& extent : extents) {
    const std::string what =
        absl::StrCat("place '", tensor.name(), "': extent [", extent.begin,
                     ", + ", extent.length, ") on ps task ", extent.ps);
    if (extent.ps < 0 || extent.ps >= num_ps) {
      return absl::InvalidArgumentError(
          absl::StrCat(what, "; wanted a task in [0, ", num_ps, ")"));
    }
    if (extent.begin != covered || extent.length < shortest ||
        extent.length > elements - covered) {
      return absl::InvalidArgumentError(absl::StrCat(
          what, "; wanted it to begin at ", covered, " and end by ", elements));
    }
    covered = extent.end();
    if (covered != elements && covered % block_elements != 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          what, "; wanted its end at a multiple of ", block_elements));
    }
  }
  if (!extents.empty() && covered == elements) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("place '", tensor.name(), "': the extents cover ", covered,
                   " of its ", elements, " elements"));
}

}  // namespace

absl::StatusOr<int64_t> TensorBytes(const TensorDef& tensor) {
  ASSIGN_OR_RETURN(const int64_t elements, Elements(tensor));
  const auto element_bytes = static_cast<int64_t>(SizeOf(tensor.dtype()));
  if (element_bytes == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(tensor.name(), ": the data type is not set"));
  }
  return elements * element_bytes;
}

absl::StatusOr<Placement> PlaceWhole(absl::Span<const TensorDef> tensors,
                                     absl::Span<const int> tasks) {
  RETURN_IF_ERROR(CheckCount(tensors.size(), tasks.size()));
  Placement placement;
  placement.reserve(tensors.size());
  for (size_t i = 0; i < tensors.size(); ++i) {
    ASSIGN_OR_RETURN(const int64_t elements, Elements(tensors[i]));
    placement.push_back({TensorExtent{tasks[i], 0, elements}});
  }
  return placement;
}

absl::Status CheckPlacement(absl::Span<const TensorDef> tensors,
                            const Placement& placement, int num_ps,
                            int64_t block_elements) {
  RETURN_IF_ERROR(CheckCount(tensors.size(), placement.size()));
  for (size_t i = 0; i < tensors.size(); ++i) {
    RETURN_IF_ERROR(
        CheckExtents(tensors[i], placement[i], num_ps, block_elements));
  }
  return absl::OkStatus();
}

}  // namespace muster
