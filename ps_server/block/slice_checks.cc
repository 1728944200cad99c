#include "ps_server/block/slice_checks.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <tuple>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"
#include "common/rpc/protocol.h"
#include "ps_server/block/float_runs.h"

namespace muster {
namespace {

int64_t UnitBytes(SliceUnit unit) {
  return unit == SliceUnit::kBlockCounts ? sizeof(int64_t) : sizeof(float);
}

// The units that so many elements from a tensor's first on take.
int64_t UnitsOf(int64_t elements, SliceUnit unit) {
  return unit == SliceUnit::kBlockCounts ? NumBlocks(elements) : elements;
}

// Where a piece begins and ends in its tensor.
std::pair<int64_t, int64_t> RangeOf(const TensorBlocks& piece, SliceUnit unit) {
  return {UnitsOf(piece.begin(), unit),
          UnitsOf(piece.begin() + piece.elements(), unit)};
}

// The piece that [begin, end) lies in.
std::optional<int> FindPiece(absl::Span<const int> pieces, int64_t begin,
                             int64_t end, const TensorTable& table,
                             SliceUnit unit) {
  for (const int piece : pieces) {
    const auto [from, to] = RangeOf(table[piece], unit);
    if (from <= begin && end <= to) return piece;
  }
  return std::nullopt;
}

std::string DescribePieces(absl::Span<const int> pieces,
                           const TensorTable& table, SliceUnit unit) {
  return absl::StrJoin(pieces, ", ", [&](std::string* out, int piece) {
    const auto [from, to] = RangeOf(table[piece], unit);
    absl::StrAppend(out, "[", from, ", ", to, ")");
  });
}

absl::Status SliceError(absl::string_view what, const TensorSlice& slice,
                        absl::string_view found) {
  return absl::InvalidArgumentError(
      absl::StrCat(what, ": slice [", slice.offset(), ", + ", slice.length(),
                   ") of '", slice.tensor(), "' ", found));
}

absl::StatusOr<CheckedSlice> CheckSlice(absl::string_view what,
                                        const TensorSlice& slice,
                                        const TensorTable& table,
                                        SliceUnit unit) {
  if (!slice.namespace_().empty()) {  // it is of its sender's
    return absl::UnimplementedError(
        absl::StrCat(what, ": namespace '",
                     absl::CHexEscape(slice.namespace_().substr(0, 80)),
                     "' of a slice; only the Sender has one"));
  }
  const absl::StatusOr<absl::Span<const int>> pieces =
      table.Find(slice.tensor());
  RETURN_IF_ERROR(Annotate(pieces.status(), what));
  const int64_t size = UnitsOf(table[pieces->front()].whole_elements(), unit);
  // In this order no sum can overflow.
  if (slice.offset() < 0 || slice.length() <= 0 || slice.offset() >= size ||
      slice.length() > size - slice.offset()) {
    return SliceError(what, slice,
                      absl::StrCat("is not inside its ", size, " elements"));
  }
  const int64_t end = slice.offset() + slice.length();
  const std::optional<int> index =
      FindPiece(*pieces, slice.offset(), end, table, unit);
  if (!index.has_value()) {
    return SliceError(what, slice,
                      absl::StrCat("is not inside what this shard has of it: ",
                                   DescribePieces(*pieces, table, unit)));
  }
  if (unit == SliceUnit::kWholeBlocks &&
      (slice.offset() % kBlockElements != 0 ||
       (end % kBlockElements != 0 && end != size))) {
    return SliceError(
        what, slice,
        absl::StrCat("does not consist of whole blocks of ", kBlockElements));
  }
  const int64_t begin = UnitsOf(table[*index].begin(), unit);
  return CheckedSlice{*index, slice.offset() - begin, slice.length()};
}

absl::Status CheckNoOverlap(absl::string_view what,
                            std::vector<CheckedSlice> slices,
                            const TensorTable& table) {
  std::sort(slices.begin(), slices.end(),
            [](const CheckedSlice& a, const CheckedSlice& b) {
              return std::tie(a.tensor, a.offset) <
                     std::tie(b.tensor, b.offset);
            });
  for (size_t i = 1; i < slices.size(); ++i) {
    const CheckedSlice& before = slices[i - 1];
    if (before.tensor != slices[i].tensor ||
        before.offset + before.length <= slices[i].offset) {
      continue;
    }
    return absl::InvalidArgumentError(
        absl::StrCat(what, ": two slices of '",
                     table[before.tensor].def().name(), "' overlap at element ",
                     table[before.tensor].begin() + slices[i].offset));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<CheckedSlice>> CheckSlices(absl::string_view what,
                                                      const Slices& slices,
                                                      const TensorTable& table,
                                                      SliceUnit unit) {
  std::vector<CheckedSlice> checked;
  checked.reserve(slices.size());
  int64_t bytes_left = kMaxPartBytes;
  for (const TensorSlice& slice : slices) {
    ASSIGN_OR_RETURN(const CheckedSlice good,
                     CheckSlice(what, slice, table, unit));
    if (good.length > bytes_left / UnitBytes(unit)) {
      return absl::InvalidArgumentError(
          absl::StrCat(what, ": the slices take more than a part's ",
                       kMaxPartBytes, " bytes; use more parts"));
    }
    bytes_left -= good.length * UnitBytes(unit);
    checked.push_back(good);
  }
  RETURN_IF_ERROR(CheckNoOverlap(what, checked, table));
  return checked;
}

absl::Status CheckMayChange(absl::string_view what,
                            absl::Span<const CheckedSlice> slices,
                            const TensorTable& table) {
  for (const CheckedSlice& slice : slices) {
    const TensorDef& def = table[slice.tensor].def();
    if (def.kind() != FROZEN) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(what, ": '", def.name(), "' is frozen; push the others"));
  }
  return absl::OkStatus();
}

int64_t SliceElements(absl::Span<const CheckedSlice> slices) {
  int64_t elements = 0;
  for (const CheckedSlice& slice : slices) elements += slice.length;
  return elements;
}

int64_t SliceBytes(absl::Span<const CheckedSlice> slices, SliceUnit unit) {
  return SliceElements(slices) * UnitBytes(unit);
}

absl::Status CheckDataSize(absl::string_view what,
                           const std::vector<CheckedSlice>& slices,
                           SliceUnit unit, size_t data_bytes,
                           const Codec* codec) {
  const int64_t wanted = codec == nullptr
                             ? SliceBytes(slices, unit)
                             : EncodedBytes(codec, SliceElements(slices));
  if (static_cast<uint64_t>(wanted) == data_bytes) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(what, ": the slices take ", wanted, " bytes, the frame has ",
                   data_bytes));
}

absl::Status CheckFinite(absl::string_view what,
                         absl::Span<const CheckedSlice> slices,
                         const TensorTable& table, const absl::Cord& data,
                         const Codec* codec) {
  FloatRuns runs(data, codec);
  for (const CheckedSlice& slice : slices) {
    const int64_t bad = FindNonFinite(runs, slice.length);
    if (bad < 0) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        what, ": '", table[slice.tensor].def().name(), "' has NaN or infinity",
        " at element ", table[slice.tensor].begin() + slice.offset + bad,
        "; nothing was changed"));
  }
  return absl::OkStatus();
}

absl::Status CheckFiniteSums(absl::string_view what,
                             absl::Span<const CheckedSlice> slices,
                             const TensorTable& table, const absl::Cord& data,
                             const Codec* codec) {
  const auto is_state = [&table](const CheckedSlice& slice) {
    return table[slice.tensor].def().kind() == STATE;
  };
  if (std::none_of(slices.begin(), slices.end(), is_state)) {
    return absl::OkStatus();
  }
  FloatRuns runs(data, codec);
  for (const CheckedSlice& slice : slices) {
    const TensorBlocks& tensor = table[slice.tensor];
    const bool state = is_state(slice);
    for (int64_t done = 0; done < slice.length;) {
      const int64_t at = slice.offset + done;
      const int64_t in_block = at % kBlockElements;
      const absl::Span<const float> run =
          runs.Next(std::min(slice.length - done, kBlockElements - in_block));
      done += static_cast<int64_t>(run.size());
      if (!state) continue;
      const float* const values =
          tensor.Stream(at / kBlockElements, /*stream=*/0) + in_block;
      for (size_t i = 0; i < run.size(); ++i) {
        const float decay = tensor.def().decay();
        if (std::isfinite(DecayAndAdd(values[i], decay, run[i]))) continue;
        return absl::InvalidArgumentError(absl::StrCat(
            what, ": '", tensor.def().name(), "' would become infinite at ",
            "element ", tensor.begin() + at + static_cast<int64_t>(i), " (",
            values[i] - decay * values[i], " + ", run[i],
            "); nothing was changed"));
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace muster
