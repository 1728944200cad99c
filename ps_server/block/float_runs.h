#ifndef PS_SERVER_BLOCK_FLOAT_RUNS_H_
#define PS_SERVER_BLOCK_FLOAT_RUNS_H_

#include <array>
#include <cstdint>

#include "absl/strings/cord.h"
#include "absl/types/span.h"
#include "common/codec/codec.h"
#include "common/codec/value_format.h"

namespace muster {

// Values as they are encoded, of another's memory.
struct EncodedRun {
  EncodedValues values;
  int64_t size = 0;
};

// Reads the values of a Cord as runs of memory, where they lie if a chunk holds
// enough of them at the alignment that they want, else gathered in a small
// tile: as float32, which a codec's are decoded to in another tile, or as they
// are encoded.
//
//   FloatRuns runs(data);
//   while (n > 0) { auto run = runs.Next(n); ...; n -= run.size(); }
//
// A run that does not end the caller's range has a multiple of kRunMultiple
// elements, so that a vector loop sees the same lanes however the bytes were
// cut on the wire: results do not depend on the transport.
class FloatRuns {
 public:
  static constexpr int64_t kRunMultiple = 64;

  // `codec`: null for none (little-endian float32). REQUIRES: both outlive
  // this; `data` is not changed.
  explicit FloatRuns(const absl::Cord& data, const Codec* codec = nullptr)
      : position_(data.char_begin()), codec_(codec) {}

  FloatRuns(const FloatRuns&) = delete;
  FloatRuns& operator=(const FloatRuns&) = delete;

  // The next 1 to `max_elements` values, valid until the next call.
  // REQUIRES: that many are left, max_elements > 0.
  absl::Span<const float> Next(int64_t max_elements);
  EncodedRun NextEncoded(int64_t max_elements);

  // The codec of the values; null for none.
  const Codec* codec() const { return codec_; }

 private:
  // 2 KB: a tile stays in L1 beside what is streamed through it, also when
  // other processes use the core.
  static constexpr int64_t kTileElements = 512;

  absl::Cord::CharIterator position_;
  const Codec* const codec_;
  // Values that a codec has encoded.
  std::array<float, kTileElements> decoded_;
  // Values that lie in several chunks; no codec takes more than float32 does.
  alignas(float) std::array<char, kTileElements * sizeof(float)> gathered_;
};

// Returns the index of the first value of the next `elements` that is NaN or
// infinite, or -1. Advances `runs` past all of them if there is none.
int64_t FindNonFinite(FloatRuns& runs, int64_t elements);

}  // namespace muster

#endif  // PS_SERVER_BLOCK_FLOAT_RUNS_H_
