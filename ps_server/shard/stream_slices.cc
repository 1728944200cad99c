#include "ps_server/shard/stream_slices.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"
#include "ps_server/block/float_runs.h"
#include "ps_server/caller/count_range.h"

namespace muster {
namespace {

constexpr absl::string_view kCountsSlot = "t";

std::string SlotNames(absl::Span<const SlotDef> slots) {
  if (slots.empty()) return "none";
  return absl::StrJoin(slots, ", ", [](std::string* out, const SlotDef& slot) {
    absl::StrAppend(out, "'", slot.name, "'");
  });
}

std::vector<int64_t> ReadCounts(const absl::Cord& data) {
  std::vector<int64_t> counts(data.size() / sizeof(int64_t));
  char* dst = reinterpret_cast<char*>(counts.data());
  for (const absl::string_view chunk : data.Chunks()) {
    std::memcpy(dst, chunk.data(), chunk.size());
    dst += chunk.size();
  }
  return counts;
}

absl::Status CheckHaveSlots(absl::string_view what,
                            const std::vector<CheckedSlice>& slices,
                            const TensorTable& tensors) {
  for (const CheckedSlice& slice : slices) {
    const TensorDef& def = tensors[slice.tensor].def();
    if (def.kind() == TRAINABLE) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(what, ": '", def.name(), "' is ",
                     def.kind() == FROZEN ? "frozen" : "a state tensor",
                     " and has no slots"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<int> StreamSlices::FindStream(absl::string_view slot,
                                             const Model& model) {
  if (slot.empty()) return 0;
  if (slot == kCountsSlot) return kCounts;
  for (size_t i = 0; i < model.slots.size(); ++i) {
    if (model.slots[i].name == slot) return static_cast<int>(1 + i);
  }
  return absl::NotFoundError(
      absl::StrCat("optimizer '", model.optimizer, "' has no slot '",
                   absl::CHexEscape(slot.substr(0, 80)), "'; it has ",
                   SlotNames(model.slots), " and 't'"));
}

absl::StatusOr<StreamSlices> StreamSlices::Create(absl::string_view what,
                                                  absl::string_view slot,
                                                  const Slices& slices,
                                                  const Model& model) {
  const absl::StatusOr<int> stream = FindStream(slot, model);
  RETURN_IF_ERROR(Annotate(stream.status(), what));
  ASSIGN_OR_RETURN(std::vector<CheckedSlice> checked,
                   CheckSlices(what, slices, model.tensors, UnitOf(*stream)));
  if (*stream != 0)
    RETURN_IF_ERROR(CheckHaveSlots(what, checked, model.tensors));
  return StreamSlices(*stream, std::move(checked));
}

absl::Status StreamSlices::CheckData(absl::string_view what,
                                     const absl::Cord& data) const {
  RETURN_IF_ERROR(CheckDataSize(what, slices_, unit(), data.size()));
  if (!is_counts()) return absl::OkStatus();
  const std::vector<int64_t> counts = ReadCounts(data);
  if (std::all_of(counts.begin(), counts.end(), IsCount)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      what, ": slot 't' has a count of updates that is out of range"));
}

void StreamSlices::Load(const absl::Cord& data, TensorTable& tensors) const {
  if (is_counts()) {
    LoadCounts(data, tensors);
  } else {
    LoadValues(data, tensors);
  }
}

void StreamSlices::LoadValues(const absl::Cord& data,
                              TensorTable& tensors) const {
  FloatRuns runs(data);
  for (const CheckedSlice& slice : slices_) {
    TensorBlocks& tensor = tensors[slice.tensor];
    const int64_t end = slice.offset + slice.length;
    for (int64_t offset = slice.offset; offset < end;) {
      const int64_t block = offset / kBlockElements;
      const int64_t begin = offset - block * kBlockElements;
      const absl::Span<const float> run = runs.Next(
          std::min(end - offset, tensor.BlockElements(block) - begin));
      std::copy(run.begin(), run.end(), tensor.Stream(block, stream_) + begin);
      offset += static_cast<int64_t>(run.size());
    }
  }
}

void StreamSlices::LoadCounts(const absl::Cord& data,
                              TensorTable& tensors) const {
  const std::vector<int64_t> counts = ReadCounts(data);
  auto next = counts.begin();
  for (const CheckedSlice& slice : slices_) {
    for (int64_t i = 0; i < slice.length; ++i) {
      tensors[slice.tensor].set_updates(slice.offset + i, *next++);
    }
  }
}

void StreamSlices::Read(const ShardSnapshot& snapshot,
                        const TensorTable& tensors, char* dst) const {
  for (const CheckedSlice& slice : slices_) {
    const TensorBlocks& tensor = tensors[slice.tensor];
    if (!is_counts()) {
      snapshot.Read(slice.tensor, tensor, stream_, slice.offset, slice.length,
                    reinterpret_cast<float*>(dst));
      dst += slice.length * sizeof(float);
      continue;
    }
    for (int64_t i = 0; i < slice.length; ++i) {
      const int64_t count =
          snapshot.Updates(slice.tensor, tensor, slice.offset + i);
      std::memcpy(dst, &count, sizeof(count));
      dst += sizeof(count);
    }
  }
}

}  // namespace muster
