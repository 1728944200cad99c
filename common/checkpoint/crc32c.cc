#include "common/checkpoint/crc32c.h"

#include <array>
#include <cstddef>
#include <cstring>

#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

namespace muster {
namespace {

// The polynomial 0x1edc6f41, bits reversed.
constexpr uint32_t kPolynomial = 0x82f63b78;

// kTables[k][b]: the CRC of byte b followed by k zero bytes ("slicing by 8").
using Tables = std::array<std::array<uint32_t, 256>, 8>;

constexpr Tables MakeTables() {
  Tables tables{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) {
      crc = (crc >> 1) ^ ((crc & 1) != 0 ? kPolynomial : 0);
    }
    tables[0][byte] = crc;
  }
  for (size_t k = 1; k < 8; ++k) {
    for (size_t byte = 0; byte < 256; ++byte) {
      const uint32_t crc = tables[k - 1][byte];
      tables[k][byte] = (crc >> 8) ^ tables[0][crc & 0xff];
    }
  }
  return tables;
}

constexpr Tables kTables = MakeTables();

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) uint32_t ExtendSse42(uint32_t crc,
                                                       absl::string_view data) {
  uint64_t state = ~crc;
  while (data.size() >= sizeof(uint64_t)) {
    uint64_t word;
    std::memcpy(&word, data.data(), sizeof(word));
    state = _mm_crc32_u64(state, word);
    data.remove_prefix(sizeof(word));
  }
  uint32_t tail = static_cast<uint32_t>(state);
  for (const char byte : data) {
    tail = _mm_crc32_u8(tail, static_cast<unsigned char>(byte));
  }
  return ~tail;
}
#endif

}  // namespace

uint32_t ExtendCrc32cPortable(uint32_t crc, absl::string_view data) {
  uint32_t state = ~crc;
  while (data.size() >= 8) {
    // Bytes are taken one by one, so that the byte order does not matter.
    std::array<unsigned char, 8> b;
    std::memcpy(b.data(), data.data(), b.size());
    state = kTables[7][b[0] ^ (state & 0xff)] ^
            kTables[6][b[1] ^ ((state >> 8) & 0xff)] ^
            kTables[5][b[2] ^ ((state >> 16) & 0xff)] ^
            kTables[4][b[3] ^ (state >> 24)] ^ kTables[3][b[4]] ^
            kTables[2][b[5]] ^ kTables[1][b[6]] ^ kTables[0][b[7]];
    data.remove_prefix(b.size());
  }
  for (const char byte : data) {
    const uint32_t index = (state ^ static_cast<unsigned char>(byte)) & 0xff;
    state = (state >> 8) ^ kTables[0][index];
  }
  return ~state;
}

uint32_t ExtendCrc32c(uint32_t crc, absl::string_view data) {
#if defined(__x86_64__)
  static const bool has_instruction = __builtin_cpu_supports("sse4.2") != 0;
  if (has_instruction) return ExtendSse42(crc, data);
#endif
  return ExtendCrc32cPortable(crc, data);
}

}  // namespace muster
