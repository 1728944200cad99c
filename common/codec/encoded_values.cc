#include "common/codec/encoded_values.h"

#include <algorithm>
#include <cassert>
#include <cstring>

#include "absl/base/config.h"
#include "absl/strings/string_view.h"
#include "common/base/cord_bytes.h"

#ifndef ABSL_IS_LITTLE_ENDIAN
#error "The wire is little-endian and values are copied as they lie."
#endif

namespace muster {

char* EncodeTo(const Codec* codec, const float* values, int64_t n, char* dst) {
  const int64_t bytes = EncodedBytes(codec, n);
  if (codec == nullptr) {
    std::memcpy(dst, values, static_cast<size_t>(bytes));
  } else {
    codec->Encode(values, n, dst);
  }
  return dst + bytes;
}

void DecodeNext(const Codec* codec, absl::Cord::CharIterator* position,
                int64_t n, float* values) {
  if (codec == nullptr) {
    return CopyNext(position, static_cast<size_t>(EncodedBytes(codec, n)),
                    reinterpret_cast<char*>(values));
  }
  const int64_t each = EncodedBytes(codec, 1);
  while (n > 0) {
    const absl::string_view chunk = absl::Cord::ChunkRemaining(*position);
    int64_t count = std::min<int64_t>(n, chunk.size() / each);
    if (count > 0) {
      codec->Decode(chunk.data(), count, values);
      absl::Cord::Advance(position, static_cast<size_t>(count * each));
    } else {
      // One value lies in two chunks.
      char encoded[sizeof(float)];
      assert(each <= static_cast<int64_t>(sizeof(encoded)));
      CopyNext(position, static_cast<size_t>(each), encoded);
      codec->Decode(encoded, 1, values);
      count = 1;
    }
    values += count;
    n -= count;
  }
}

}  // namespace muster
