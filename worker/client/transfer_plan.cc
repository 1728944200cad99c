#include "worker/client/transfer_plan.h"

#include <algorithm>
#include <array>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/rpc/protocol.h"
#include "common/tensor/dtype.h"

namespace muster {
namespace {

// The room in a header for the slices' names and numbers; the rest of
// kMaxHeaderBytes is for the sender and the fence.
constexpr int64_t kMaxSliceHeaderBytes = kMaxHeaderBytes / 2;
// Two 64-bit varints, tags and lengths around a slice's name.
constexpr int64_t kSliceOverheadBytes = 32;

// Fills the parts of one shard: those of frozen tensors, or those of others.
class PartPacker {
 public:
  PartPacker(int64_t max_bytes, std::vector<PlannedPart>* parts)
      : max_bytes_(max_bytes), parts_(parts) {}

  // Adds a run of blocks; it fits into an empty part.
  void Add(const PlannedSlice& slice, int64_t bytes, int64_t name_bytes) {
    const int64_t header = name_bytes + kSliceOverheadBytes;
    if (part_ < 0 || Part().bytes + bytes > max_bytes_ ||
        header_bytes_ + header > kMaxSliceHeaderBytes) {
      part_ = static_cast<int>(parts_->size());
      parts_->emplace_back();
      header_bytes_ = 0;
    }
    header_bytes_ += header;
    Part().slices.push_back(slice);
    Part().bytes += bytes;
  }

  // The size that an empty part may grow to.
  int64_t max_bytes() const { return max_bytes_; }

  int64_t room() const { return part_ < 0 ? 0 : max_bytes_ - Part().bytes; }

 private:
  PlannedPart& Part() const { return (*parts_)[part_]; }

  const int64_t max_bytes_;
  std::vector<PlannedPart>* parts_;
  // The part begun; -1: none.
  int part_ = -1;
  int64_t header_bytes_ = 0;
};

// Adds an extent: first what fits into the part begun, then whole parts.
void AddExtent(int tensor, const TensorExtent& extent, int64_t element_bytes,
               int64_t name_bytes, PartPacker* packer) {
  const int64_t block_bytes = kBlockElements * element_bytes;
  int64_t offset = extent.begin;
  while (offset < extent.end()) {
    const int64_t left = extent.end() - offset;
    int64_t blocks = std::max<int64_t>(1, packer->max_bytes() / block_bytes);
    const int64_t fitting = packer->room() / block_bytes;
    if (left * element_bytes > packer->room() && fitting > 0) blocks = fitting;
    const int64_t length = std::min(left, blocks * kBlockElements);
    packer->Add({tensor, offset, length}, length * element_bytes, name_bytes);
    offset += length;
  }
}

std::vector<std::vector<PartId>> PartsOf(
    size_t num_tensors, const std::vector<std::vector<PlannedPart>>& parts) {
  std::vector<std::vector<PartId>> parts_of(num_tensors);
  for (size_t shard = 0; shard < parts.size(); ++shard) {
    for (size_t part = 0; part < parts[shard].size(); ++part) {
      for (const PlannedSlice& slice : parts[shard][part].slices) {
        parts_of[slice.tensor].push_back(
            {static_cast<int>(shard), static_cast<int>(part)});
      }
    }
  }
  return parts_of;
}

void NumberPushedParts(absl::Span<const TensorDef> tensors,
                       TransferPlan* plan) {
  for (std::vector<PlannedPart>& parts : plan->parts) {
    int& pushed = plan->pushed_parts.emplace_back(0);
    for (PlannedPart& part : parts) {
      const TensorDef& first = tensors[part.slices.front().tensor];
      if (first.kind() != FROZEN) part.pushed_as = pushed++;
    }
  }
}

// A plan whose shards may have any number of parts.
TransferPlan PlanParts(absl::Span<const TensorDef> tensors,
                       const Placement& placement,
                       absl::Span<const int64_t> max_part_bytes) {
  TransferPlan plan;
  plan.parts.resize(max_part_bytes.size());
  // [shard][whether frozen]
  std::vector<std::array<PartPacker, 2>> packers;
  for (size_t i = 0; i < max_part_bytes.size(); ++i) {
    const PartPacker packer(max_part_bytes[i], &plan.parts[i]);
    packers.push_back({packer, packer});
  }
  for (size_t i = 0; i < tensors.size(); ++i) {
    for (const TensorExtent& extent : placement[i]) {
      AddExtent(static_cast<int>(i), extent,
                static_cast<int64_t>(SizeOf(tensors[i].dtype())),
                static_cast<int64_t>(tensors[i].name().size()),
                &packers[extent.ps][tensors[i].kind() == FROZEN ? 1 : 0]);
    }
  }
  NumberPushedParts(tensors, &plan);
  plan.parts_of = PartsOf(tensors.size(), plan.parts);
  return plan;
}

absl::Status CheckTypes(absl::Span<const TensorDef> tensors) {
  for (const TensorDef& tensor : tensors) {
    if (SizeOf(tensor.dtype()) > 0) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("cut '", tensor.name(), "' into parts: data type ",
                     DataTypeName(tensor.dtype()), ", wanted one with a size"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<TransferPlan> PlanTransfer(
    absl::Span<const TensorDef> tensors, const Placement& placement,
    absl::Span<const int64_t> max_part_bytes) {
  RETURN_IF_ERROR(CheckPlacement(tensors, placement,
                                 static_cast<int>(max_part_bytes.size()),
                                 kBlockElements));
  RETURN_IF_ERROR(CheckTypes(tensors));
  TransferPlan plan = PlanParts(tensors, placement, max_part_bytes);
  std::vector<int64_t> enough(max_part_bytes.begin(), max_part_bytes.end());
  for (size_t i = 0; i < enough.size(); ++i) {
    if (plan.parts[i].size() > kMaxStepParts) enough[i] = kMaxPartBytes;
  }
  if (absl::MakeConstSpan(enough) == max_part_bytes) return plan;
  return PlanParts(tensors, placement, enough);
}

}  // namespace muster
