#include "common/codec/codec.h"

namespace muster {

absl::StatusOr<const Codec*> FindCodec(absl::string_view name) {
  if (name.empty()) return nullptr;
  return CodecRegistry::Find(name);
}

int64_t EncodedBytes(const Codec* codec, int64_t n) {
  const int64_t each = codec == nullptr ? static_cast<int64_t>(sizeof(float))
                                        : codec->bytes_per_value();
  return n * each;
}

}  // namespace muster
