#include "ps_server/block/tensor_table.h"

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/nearest_name.h"
#include "common/base/status_macros.h"
#include "common/process/memory_limit.h"
#include "common/tensor/aligned_places.h"
#include "common/tensor/dtype.h"
#include "common/tensor/shape.h"

namespace muster {
namespace {

constexpr size_t kMaxNameLength = 255;

bool IsNameCharacter(char c) {
  return absl::ascii_isalnum(c) || c == '_' || c == '.' || c == '/' || c == '-';
}

std::string Printable(absl::string_view name) {
  return absl::CHexEscape(name.substr(0, kMaxNameLength));
}

absl::Status CheckDecay(const TensorDef& def) {
  const bool in_range = def.decay() >= 0 && def.decay() <= 1;  // no NaN
  if (def.decay() == 0 || (def.kind() == STATE && in_range)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("define '", def.name(), "': decay ", def.decay(), " of a ",
                   TensorKind_Name(def.kind()),
                   " tensor; wanted 0 to 1 for a STATE tensor, 0 for others"));
}

absl::Status CheckExtent(absl::string_view what, const TensorDef& def) {
  const Extent& extent = def.extent();
  const int64_t elements = NumElements(def.shape());
  // In this order no sum can overflow.
  if (!def.has_extent() || (extent.begin() >= 0 && extent.length() > 0 &&
                            extent.begin() % kBlockElements == 0 &&
                            extent.length() <= elements - extent.begin() &&
                            (extent.length() % kBlockElements == 0 ||
                             extent.length() == elements - extent.begin()))) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      what, ": extent [", extent.begin(), ", + ", extent.length(), ") of its ",
      elements, " elements; wanted whole blocks of ", kBlockElements));
}

// Checks that two definitions are of different tensors, or of pieces of one
// that do not overlap.
absl::Status CheckDiffer(const TensorDef& a, const TensorDef& b) {
  if (a.name() != b.name()) return absl::OkStatus();
  const std::string what = absl::StrCat("define '", a.name(), "': two ");
  TensorDef same = a;
  *same.mutable_extent() = b.extent();
  if (!a.has_extent() || !b.has_extent() ||
      same.SerializeAsString() != b.SerializeAsString()) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, "parameters have this name"));
  }
  const int64_t from = std::max(a.extent().begin(), b.extent().begin());
  if (a.extent().begin() + a.extent().length() <= from ||
      b.extent().begin() + b.extent().length() <= from) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat(what, "pieces have element ", from));
}

// Checks each against its neighbour in the order of names and begins.
absl::Status CheckAllDiffer(
    const google::protobuf::RepeatedPtrField<TensorDef>& defs) {
  std::vector<const TensorDef*> sorted;
  for (const TensorDef& def : defs) sorted.push_back(&def);
  std::sort(sorted.begin(), sorted.end(),
            [](const TensorDef* a, const TensorDef* b) {
              return std::forward_as_tuple(a->name(), a->extent().begin()) <
                     std::forward_as_tuple(b->name(), b->extent().begin());
            });
  for (size_t i = 1; i < sorted.size(); ++i) {
    RETURN_IF_ERROR(CheckDiffer(*sorted[i - 1], *sorted[i]));
  }
  return absl::OkStatus();
}

absl::Status CheckDef(const TensorDef& def) {
  RETURN_IF_ERROR(CheckParameterName(def.name()));
  const std::string what = absl::StrCat("define '", def.name(), "'");
  if (def.dtype() != FLOAT32) {
    return absl::UnimplementedError(absl::StrCat(what, ": dtype ",
                                                 DataTypeName(def.dtype()),
                                                 "; a shard holds float32"));
  }
  if (!TensorKind_IsValid(def.kind())) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, ": unknown tensor kind ", def.kind()));
  }
  RETURN_IF_ERROR(CheckDecay(def));
  if (!def.layout().empty()) {
    return absl::UnimplementedError(
        absl::StrCat(what, ": layout '", Printable(def.layout()),
                     "'; only the canonical layout '' is there"));
  }
  const absl::StatusOr<Shape> shape = Shape::Create(def.shape());
  RETURN_IF_ERROR(Annotate(shape.status(), what));
  for (const int64_t dim : def.shape()) {
    if (dim > 0) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(what, ": shape ", shape->ToString(),
                     " has a dimension that is not positive"));
  }
  return CheckExtent(what, def);
}

}  // namespace

absl::Status CheckParameterName(const std::string& name) {
  if (name.empty() || name.size() > kMaxNameLength ||
      !std::all_of(name.begin(), name.end(), IsNameCharacter)) {
    return absl::InvalidArgumentError(
        absl::StrCat("define '", Printable(name),
                     "': a parameter's name has 1 to 255 of [A-Za-z0-9_./-]"));
  }
  return absl::OkStatus();
}

absl::StatusOr<int64_t> CheckTensorDefs(
    const google::protobuf::RepeatedPtrField<TensorDef>& defs, int num_slots,
    int64_t max_bytes) {
  int64_t left = max_bytes;
  for (const TensorDef& def : defs) {
    RETURN_IF_ERROR(CheckDef(def));
    const int streams = def.kind() == TRAINABLE ? 1 + num_slots : 1;
    // By division: a product of checked factors could still overflow.
    if (HeldElements(def) >
        left / static_cast<int64_t>(sizeof(float)) / streams) {
      return absl::InvalidArgumentError(absl::StrCat(
          "define '", def.name(), "': ",
          SaturatingProduct(HeldElements(def),
                            streams * int64_t{sizeof(float)}),
          " bytes with its slots, ", left, " are left of the ", max_bytes,
          " that the shard may have; use more ps tasks"));
    }
    left -= HeldElements(def) * static_cast<int64_t>(sizeof(float)) * streams;
  }
  RETURN_IF_ERROR(CheckAllDiffer(defs));
  return left;
}

absl::StatusOr<TensorTable> TensorTable::Create(
    const google::protobuf::RepeatedPtrField<TensorDef>& defs,
    absl::Span<const SlotDef> slots, Sharing sharing) {
  const auto slots_of = [slots](const TensorDef& def) {
    return def.kind() == TRAINABLE ? slots : absl::Span<const SlotDef>();
  };
  AlignedPlaces places;
  AlignedPlaces slot_places;
  std::vector<int64_t> begins;
  std::vector<int64_t> slot_begins;
  for (const TensorDef& def : defs) {
    // A worker that reads in place joins the pieces of a tensor.
    const int64_t size_bytes = HeldElements(def) * sizeof(float);
    begins.push_back(def.has_extent() ? places.AddAtPage(size_bytes)
                                      : places.Add(size_bytes));
    slot_begins.push_back(
        slot_places.Add(SlotMemoryBytes(def, slots_of(def).size())));
  }
  TensorTable table;
  RETURN_IF_ERROR(
      table.Allocate(places.size_bytes(), slot_places.size_bytes(), sharing));
  table.tensors_.reserve(defs.size());
  for (const TensorDef& def : defs) {
    const int i = table.size();
    table.by_name_[def.name()].push_back(i);
    table.tensors_.emplace_back(
        def, slots_of(def),
        reinterpret_cast<float*>(table.memory_->data() + begins[i]),
        reinterpret_cast<float*>(table.slot_memory_.data() + slot_begins[i]));
  }
  return table;
}

absl::Status TensorTable::Allocate(int64_t parameter_bytes, int64_t slot_bytes,
                                   Sharing sharing) {
  memory_ = sharing == Sharing::kShared
                ? ParameterMemory::Shared(parameter_bytes)
                : ParameterMemory::Private(parameter_bytes);
  std::optional<AlignedBuffer> slots = AlignedBuffer::TryCreate(slot_bytes);
  if (memory_ != nullptr && slots.has_value()) {
    slot_memory_ = *std::move(slots);
    return absl::OkStatus();
  }
  return absl::ResourceExhaustedError(
      absl::StrCat("the machine has no memory for parameters of ",
                   parameter_bytes, " bytes and slots of ", slot_bytes,
                   "; use more ps tasks, or end what else runs there"));
}

absl::StatusOr<absl::Span<const int>> TensorTable::Find(
    absl::string_view name) const {
  const auto it = by_name_.find(name);
  if (it != by_name_.end()) return absl::MakeConstSpan(it->second);
  std::vector<std::string> known;
  for (const auto& [other, pieces] : by_name_) known.push_back(other);
  const std::string nearest =
      NearestName(name.substr(0, kMaxNameLength), known);
  return absl::NotFoundError(absl::StrCat(
      "this shard has no parameter '", Printable(name), "'",
      nearest.empty() ? "" : absl::StrCat("; did you mean '", nearest, "'?")));
}

int64_t TensorTable::parameter_bytes() const {
  int64_t bytes = 0;
  for (const TensorBlocks& tensor : tensors_) bytes += tensor.parameter_bytes();
  return bytes;
}

int64_t TensorTable::slot_bytes() const {
  int64_t bytes = 0;
  for (const TensorBlocks& tensor : tensors_) bytes += tensor.slot_bytes();
  return bytes;
}

}  // namespace muster
