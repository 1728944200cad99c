#ifndef PS_SERVER_BLOCK_VALUE_CORD_H_
#define PS_SERVER_BLOCK_VALUE_CORD_H_

#include "absl/strings/cord.h"
#include "absl/types/span.h"
#include "common/codec/codec.h"
#include "common/tensor/buffer_pool.h"
#include "ps_server/block/slice_checks.h"
#include "ps_server/block/tensor_table.h"

namespace muster {

// The float32 values of parameters, slice after slice. Of large slices nothing
// is copied: the Cord refers to them where they lie, and shows what is done to
// them, so that it is to be copied before the next update. Many small
// ones are gathered in memory of `pool`. REQUIRES: the slices were checked;
// `tensors` outlive the Cord.
absl::Cord ValueCord(const TensorTable& tensors,
                     absl::Span<const CheckedSlice> slices, BufferPool* pool);

// Writes the same values to `dst`, encoded by `codec` (null: float32).
void WriteValues(const TensorTable& tensors,
                 absl::Span<const CheckedSlice> slices, const Codec* codec,
                 char* dst);

}  // namespace muster

#endif  // PS_SERVER_BLOCK_VALUE_CORD_H_
