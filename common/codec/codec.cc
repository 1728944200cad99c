#include "common/codec/codec.h"

namespace muster {

absl::StatusOr<const Codec*> FindCodec(absl::string_view name) {
  if (name.empty()) return nullptr;
  return CodecRegistry::Find(name);
}

int64_t EncodedBytes(const Codec* codec, int64_t n) {
  return n * BytesPerValue(FormatOf(codec));
}

ValueFormat FormatOf(const Codec* codec) {
  return codec == nullptr ? ValueFormat::kFloat32 : codec->format();
}

}  // namespace muster
