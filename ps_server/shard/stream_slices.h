#ifndef PS_SERVER_SHARD_STREAM_SLICES_H_
#define PS_SERVER_SHARD_STREAM_SLICES_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/cord.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/optimizer/update_rule.h"
#include "ps_server/block/shard_snapshot.h"
#include "ps_server/block/slice_checks.h"
#include "ps_server/block/tensor_table.h"

namespace muster {

// Slices of one stream of a model's tensors, as a checkpoint names it: "" is
// the parameter itself, the name of a slot of the optimizer that slot, and "t"
// the INT64 counts of updates, one a block. How values come in and go out by
// the chief.
class StreamSlices {
 public:
  // The model that has the streams.
  struct Model {
    absl::string_view optimizer;
    absl::Span<const SlotDef> slots;
    const TensorTable& tensors;
  };

  // Finds the stream called `slot`, and checks the slices. Errors begin with
  // `what`: NotFound naming the slots that there are; InvalidArgument for a
  // slot of a tensor that is not trainable; those of CheckSlices.
  static absl::StatusOr<StreamSlices> Create(absl::string_view what,
                                             absl::string_view slot,
                                             const Slices& slices,
                                             const Model& model);

  bool is_parameter() const { return stream_ == 0; }
  bool is_counts() const { return stream_ == kCounts; }
  const std::vector<CheckedSlice>& slices() const { return slices_; }
  int64_t bytes() const { return SliceBytes(slices_, unit()); }

  // Whether `data` are as many bytes, and its counts are counts
  // (count_range.h). Errors: InvalidArgument.
  absl::Status CheckData(absl::string_view what, const absl::Cord& data) const;

  // Copies `data` into the tensors. REQUIRES: CheckData is OK.
  void Load(const absl::Cord& data, TensorTable& tensors) const;

  // Writes what the snapshot has of them to `dst`, of bytes().
  void Read(const ShardSnapshot& snapshot, const TensorTable& tensors,
            char* dst) const;

 private:
  // The number of the counts; TensorBlocks has those of the others.
  static constexpr int kCounts = -1;

  StreamSlices(int stream, std::vector<CheckedSlice> slices)
      : stream_(stream), slices_(std::move(slices)) {}

  static absl::StatusOr<int> FindStream(absl::string_view slot,
                                        const Model& model);
  static SliceUnit UnitOf(int stream) {
    return stream == kCounts ? SliceUnit::kBlockCounts : SliceUnit::kElements;
  }
  SliceUnit unit() const { return UnitOf(stream_); }

  void LoadValues(const absl::Cord& data, TensorTable& tensors) const;
  void LoadCounts(const absl::Cord& data, TensorTable& tensors) const;

  int stream_;
  std::vector<CheckedSlice> slices_;
};

}  // namespace muster

#endif  // PS_SERVER_SHARD_STREAM_SLICES_H_
