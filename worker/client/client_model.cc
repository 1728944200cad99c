#include "worker/client/client_model.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "common/rpc/protocol.h"
#include "common/tensor/dtype.h"

namespace muster {
namespace {

constexpr absl::string_view kCountSlot = "t";

template <typename View>
absl::Status CheckViewSizes(const ClientModel& model,
                            absl::Span<const View> views) {
  if (views.size() != model.tensors.size()) {
    return absl::InvalidArgumentError(absl::StrCat("got ", views.size(),
                                                   " tensors, the model has ",
                                                   model.tensors.size()));
  }
  for (size_t i = 0; i < views.size(); ++i) {
    const int tensor = static_cast<int>(i);
    const int64_t wanted = model.TensorBytes(tensor);
    if (views[i].size_bytes != wanted) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", model.tensors[i].name(), "' has ", wanted,
                       " bytes, got ", views[i].size_bytes));
    }
  }
  return absl::OkStatus();
}

}  // namespace

int64_t ClientModel::ElementBytes(int tensor, absl::string_view slot) const {
  if (slot == kCountSlot) return sizeof(int64_t);
  return static_cast<int64_t>(SizeOf(tensors[tensor].dtype()));
}

int64_t ClientModel::NumElements(int tensor, absl::string_view slot) const {
  int64_t elements = 1;
  for (const int64_t dim : tensors[tensor].shape()) elements *= dim;
  if (slot != kCountSlot) return elements;
  return (elements + kBlockElements - 1) / kBlockElements;
}

void ClientModel::FillSlice(const PlannedSlice& slice,
                            TensorSlice* message) const {
  message->set_tensor(tensors[slice.tensor].name());
  message->set_offset(slice.offset);
  message->set_length(slice.length);
}

absl::Status ClientModel::CheckViews(absl::Span<const TensorView> views) const {
  return CheckViewSizes(*this, views);
}

absl::Status ClientModel::CheckViews(
    absl::Span<const MutableTensorView> views) const {
  return CheckViewSizes(*this, views);
}

char* CopyCord(const absl::Cord& data, char* dst) {
  for (const absl::string_view chunk : data.Chunks()) {
    std::memcpy(dst, chunk.data(), chunk.size());
    dst += chunk.size();
  }
  return dst;
}

absl::Status ScatterCord(const ClientModel& model, const PlannedPart& part,
                         const absl::Cord& data,
                         absl::Span<const MutableTensorView> into) {
  if (static_cast<int64_t>(data.size()) != part.bytes) {
    return absl::InternalError(absl::StrCat(
        "asked for ", part.bytes, " bytes of tensors, got ", data.size()));
  }
  auto it = data.char_begin();
  for (const PlannedSlice& slice : part.slices) {
    const int64_t element_bytes = model.ElementBytes(slice.tensor, "");
    char* dst = into[slice.tensor].data + slice.offset * element_bytes;
    int64_t left = slice.length * element_bytes;
    while (left > 0) {
      const absl::string_view run = absl::Cord::ChunkRemaining(it);
      const auto size = std::min<int64_t>(left, run.size());
      std::memcpy(dst, run.data(), size);
      absl::Cord::Advance(&it, size);
      dst += size;
      left -= size;
    }
  }
  return absl::OkStatus();
}

}  // namespace muster
