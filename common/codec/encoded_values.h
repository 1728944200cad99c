#ifndef COMMON_CODEC_ENCODED_VALUES_H_
#define COMMON_CODEC_ENCODED_VALUES_H_

#include <cstdint>

#include "absl/strings/cord.h"
#include "common/codec/codec.h"

namespace muster {

// Writes n values to `dst` as `codec` encodes them (null: float32 as they are).
// Returns the first byte behind.
char* EncodeTo(const Codec* codec, const float* values, int64_t n, char* dst);

// Reads the next n values of a Cord, out of however many chunks they lie in,
// and moves `position` behind them. `values` needs no alignment.
// REQUIRES: that many are left; `codec` is null or takes at most 4 bytes a
// value.
void DecodeNext(const Codec* codec, absl::Cord::CharIterator* position,
                int64_t n, float* values);

}  // namespace muster

#endif  // COMMON_CODEC_ENCODED_VALUES_H_
