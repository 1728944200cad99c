#ifndef PS_SERVER_BLOCK_SLICE_CHECKS_H_
#define PS_SERVER_BLOCK_SLICE_CHECKS_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/cord.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/codec/codec.h"
#include "google/protobuf/repeated_ptr_field.h"
#include "proto/tensor.pb.h"
#include "ps_server/block/tensor_table.h"

namespace muster {

// A slice that was found and lies inside one piece of its tensor.
struct CheckedSlice {
  int tensor = 0;      // index in the TensorTable
  int64_t offset = 0;  // from the piece's first on
  int64_t length = 0;
};

using Slices = google::protobuf::RepeatedPtrField<TensorSlice>;

// The unit in which a slice counts.
enum class SliceUnit {
  kElements,     // values of a tensor
  kWholeBlocks,  // the same, but only whole blocks (the tensor's end may be
                 // a shorter one)
  kBlockCounts,  // the INT64 slot "t": one element a block
};

// Checks slices from outside: default namespace, known tensor, positive
// length, inside one of the tensor's pieces, no two overlapping, and at most
// kMaxPartBytes all together. `what` ("push of step 7 part 0 from ...") begins
// each error. Errors: InvalidArgument, NotFound, Unimplemented.
absl::StatusOr<std::vector<CheckedSlice>> CheckSlices(absl::string_view what,
                                                      const Slices& slices,
                                                      const TensorTable& table,
                                                      SliceUnit unit);

// The elements of all slices, and the bytes that they take.
int64_t SliceElements(absl::Span<const CheckedSlice> slices);
int64_t SliceBytes(absl::Span<const CheckedSlice> slices, SliceUnit unit);

// Checks that none of the slices is of a frozen tensor; the error
// (InvalidArgument) names it.
absl::Status CheckMayChange(absl::string_view what,
                            absl::Span<const CheckedSlice> slices,
                            const TensorTable& table);

// Checks that a frame carries exactly the bytes of its slices, whose values are
// encoded by `codec` (null: as they are).
absl::Status CheckDataSize(absl::string_view what,
                           const std::vector<CheckedSlice>& slices,
                           SliceUnit unit, size_t data_bytes,
                           const Codec* codec = nullptr);

// Checks that every value in `data` is finite; the error (InvalidArgument)
// names the tensor and the element. REQUIRES: CheckDataSize is OK.
absl::Status CheckFinite(absl::string_view what,
                         absl::Span<const CheckedSlice> slices,
                         const TensorTable& table, const absl::Cord& data,
                         const Codec* codec = nullptr);

// Checks that adding `data` to the state tensors in it leaves every value
// finite: two finite numbers may have an infinite sum. (What an update rule
// makes of a finite gradient is not known before it ran.) REQUIRES: the slices
// are whole blocks, CheckFinite is OK. Errors: InvalidArgument, as CheckFinite.
absl::Status CheckFiniteSums(absl::string_view what,
                             absl::Span<const CheckedSlice> slices,
                             const TensorTable& table, const absl::Cord& data,
                             const Codec* codec = nullptr);

}  // namespace muster

#endif  // PS_SERVER_BLOCK_SLICE_CHECKS_H_
