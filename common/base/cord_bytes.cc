#include "common/base/cord_bytes.h"

#include <cstring>

#include "absl/strings/string_view.h"

namespace muster {

void CopyNext(absl::Cord::CharIterator* position, size_t size_bytes,
              char* dst) {
  while (size_bytes > 0) {
    const absl::string_view piece =
        absl::Cord::ChunkRemaining(*position).substr(0, size_bytes);
    std::memcpy(dst, piece.data(), piece.size());
    absl::Cord::Advance(position, piece.size());
    dst += piece.size();
    size_bytes -= piece.size();
  }
}

char* CopyCord(const absl::Cord& bytes, char* dst) {
  for (const absl::string_view chunk : bytes.Chunks()) {
    if (dst != chunk.data()) std::memcpy(dst, chunk.data(), chunk.size());
    dst += chunk.size();
  }
  return dst;
}

}  // namespace muster
