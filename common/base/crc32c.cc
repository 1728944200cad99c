#include "common/base/crc32c.h"

#include <algorithm>
#include <cstddef>

#include "isa-l/crc.h"

namespace muster {
namespace {

// ISA-L takes an int.
constexpr size_t kMostBytes = size_t{1} << 30;

}  // namespace

uint32_t ExtendCrc32c(uint32_t crc, absl::string_view data) {
  uint32_t state = ~crc;
  while (!data.empty()) {
    const size_t size = std::min(data.size(), kMostBytes);
    // It does not write.
    auto* const bytes =
        reinterpret_cast<unsigned char*>(const_cast<char*>(data.data()));
    state = crc32_iscsi(bytes, static_cast<int>(size), state);
    data.remove_prefix(size);
  }
  return ~state;
}

}  // namespace muster
