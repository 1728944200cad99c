#include "worker/input/batch.h"

#include <atomic>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace muster {
namespace {

std::string Described(absl::string_view name, DataType dtype) {
  return absl::StrCat(DataTypeName(dtype), " '", name, "'");
}

}  // namespace

void Batch::Add(absl::string_view name, DataType dtype, const Shape& row_shape,
                int64_t room) {
  tensors.push_back(
      {std::string(name), dtype, row_shape,
       AlignedBuffer(room * row_shape.num_elements() * SizeOf(dtype))});
}

absl::StatusOr<int> Batch::IndexOf(absl::string_view name,
                                   DataType dtype) const {
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i].name != name) continue;
    if (tensors[i].dtype == dtype) return static_cast<int>(i);
    return absl::InvalidArgumentError(
        absl::StrCat("batch: wanted ", Described(name, dtype), ", it has ",
                     Described(name, tensors[i].dtype)));
  }
  return absl::NotFoundError(absl::StrCat(
      "batch: wanted ", Described(name, dtype), ", it has [",
      absl::StrJoin(tensors, ", ",
                    [](std::string* out, const BatchTensor& tensor) {
                      out->append(Described(tensor.name, tensor.dtype));
                    }),
      "]"));
}

const BatchTensor* Batch::Find(absl::string_view name) const {
  const auto found = absl::c_find_if(
      tensors, [&](const BatchTensor& tensor) { return tensor.name == name; });
  return found == tensors.end() ? nullptr : &*found;
}

int64_t NewBatchId() {
  static std::atomic<int64_t> last{0};
  return ++last;
}

Batch MakeLabelledBatch(int64_t room, const Shape& row_shape,
                        int64_t num_targets) {
  Batch batch;
  batch.Add(kBatchInput, FLOAT32, row_shape, room);
  if (num_targets > 0) {
    batch.Add(kBatchLabels, FLOAT32, Shape({num_targets}), room);
  } else {
    batch.Add(kBatchLabels, INT32, Shape(), room);
  }
  return batch;
}

}  // namespace muster
