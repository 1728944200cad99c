#include "worker/client/client_model.h"

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/codec/encoded_values.h"
#include "common/rpc/protocol.h"
#include "common/tensor/dtype.h"
#include "common/tensor/shape.h"

namespace muster {
namespace {

constexpr absl::string_view kCountSlot = "t";

// A row of a table: it fits into a part, and into memory with its slots.
constexpr int64_t kMaxRowElements = 65536;

// Frozen tensors are to have so much of their bytes.
enum class FrozenHave { kAll, kNone };

template <typename View>
absl::Status CheckViewSizes(const ClientModel& model,
                            absl::Span<const View> views,
                            FrozenHave frozen = FrozenHave::kAll) {
  if (views.size() != model.tensors.size()) {
    return absl::InvalidArgumentError(absl::StrCat("got ", views.size(),
                                                   " tensors, the model has ",
                                                   model.tensors.size()));
  }
  for (size_t i = 0; i < views.size(); ++i) {
    const int tensor = static_cast<int>(i);
    const bool is_empty =
        frozen == FrozenHave::kNone && model.tensors[i].kind() == FROZEN;
    const int64_t wanted = is_empty ? 0 : model.TensorBytes(tensor);
    if (views[i].size_bytes != wanted) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", model.tensors[i].name(), "' has ", wanted,
                       " bytes, got ", views[i].size_bytes));
    }
  }
  return absl::OkStatus();
}

// How many units of TensorSlice the first `elements` of a tensor take.
int64_t UnitsOf(int64_t elements, absl::string_view slot) {
  return slot == kCountSlot ? NumBlocks(elements) : elements;
}

int64_t BytesOf(const PlannedPart& part, const Codec* codec) {
  return EncodedBytes(codec, part.bytes / static_cast<int64_t>(sizeof(float)));
}

}  // namespace

int64_t ClientModel::ElementBytes(int tensor, absl::string_view slot) const {
  if (slot == kCountSlot) return sizeof(int64_t);
  return static_cast<int64_t>(SizeOf(tensors[tensor].dtype()));
}

int64_t ClientModel::NumElements(int tensor, absl::string_view slot) const {
  return UnitsOf(muster::NumElements(tensors[tensor].shape()), slot);
}

TensorExtent ClientModel::InUnits(const TensorExtent& extent,
                                  absl::string_view slot) const {
  const int64_t begin = UnitsOf(extent.begin, slot);
  return {extent.ps, begin, UnitsOf(extent.end(), slot) - begin};
}

absl::Status ClientModel::CheckIsWhole() const {
  std::vector<absl::string_view> cut;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const int64_t elements = NumElements(static_cast<int>(i), "");
    if (placement[i].front().IsAllOf(elements)) continue;
    cut.push_back(tensors[i].name());
  }
  if (cut.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "'", absl::StrJoin(cut, "', '"), cut.size() == 1 ? "' is" : "' are",
      " in pieces on the ps tasks; placement.partition.none {} keeps them "
      "whole"));
}

absl::Status ClientModel::CheckHasNoTables(absl::string_view way) const {
  if (tables.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(way, ": the model has a table, '", tables.front().name(),
                   "'; wanted none, or the model without ", way));
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

absl::Status ClientModel::CheckGradients(
    absl::Span<const TensorView> views) const {
  return CheckViewSizes(*this, views, FrozenHave::kNone);
}

absl::Status ClientModel::CheckRows(int table, absl::string_view what,
                                    size_t ids, size_t values) const {
  const auto dim = static_cast<size_t>(tables[table].dim());
  if (values == ids * dim) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("rows of '", tables[table].name(), "': ", ids, " ids and ",
                   values, " ", what, "; wanted ", dim, " of these a row"));
}

absl::Status CheckTables(absl::Span<const TableDef> tables,
                         absl::Span<const TensorDef> tensors) {
  absl::flat_hash_set<absl::string_view> names;
  for (const TensorDef& tensor : tensors) names.insert(tensor.name());
  for (const TableDef& table : tables) {
    if (table.dim() < 1 || table.dim() > kMaxRowElements) {
      return absl::InvalidArgumentError(
          absl::StrCat("table '", table.name(), "': dim is ", table.dim(),
                       ", wanted 1 to ", kMaxRowElements));
    }
    if (names.insert(table.name()).second) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "table '", table.name(),
        "': a tensor or another table has this name; wanted one of its own"));
  }
  return absl::OkStatus();
}

int64_t BytesOnTheWay(const TransferPlan& plan, PartsOf parts,
                      const Codec* codec, int except) {
  int64_t bytes = 0;
  for (size_t shard = 0; shard < plan.parts.size(); ++shard) {
    if (static_cast<int>(shard) == except) continue;
    for (const PlannedPart& part : plan.parts[shard]) {
      if (parts == PartsOf::kPull || part.is_pushed()) {
        bytes += BytesOf(part, codec);
      }
    }
  }
  return bytes;
}

absl::Status ScatterValues(const PlannedPart& part, const Codec* codec,
                           const absl::Cord& data,
                           absl::Span<const MutableTensorView> into) {
  const int64_t wanted = BytesOf(part, codec);
  if (static_cast<int64_t>(data.size()) != wanted) {
    return absl::InternalError(absl::StrCat(
        "asked for ", wanted, " bytes of tensors, got ", data.size()));
  }
  auto position = data.char_begin();
  for (const PlannedSlice& slice : part.slices) {
    auto* const values = reinterpret_cast<float*>(into[slice.tensor].data);
    DecodeNext(codec, &position, slice.length, values + slice.offset);
  }
  return absl::OkStatus();
}

}  // namespace muster
