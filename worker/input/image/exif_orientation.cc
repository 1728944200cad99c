#include "worker/input/image/exif_orientation.h"

#include <algorithm>
#include <cstddef>
#include <optional>

#include "absl/strings/string_view.h"

namespace muster {
namespace {

constexpr uint8_t kEndOfImage = 0xd9;
constexpr uint8_t kStartOfScan = 0xda;
constexpr uint8_t kExifSegment = 0xe1;
constexpr absl::string_view kExifName("Exif\0\0", 6);

constexpr size_t kDirectoryEntryBytes = 12;
constexpr uint32_t kOrientationTag = 0x0112;
constexpr uint32_t kShortType = 3;

bool StartsWith(absl::Span<const uint8_t> bytes, absl::string_view prefix) {
  return bytes.size() >= prefix.size() &&
         std::equal(prefix.begin(), prefix.end(), bytes.begin(),
                    [](char wanted, uint8_t found) {
                      return static_cast<uint8_t>(wanted) == found;
                    });
}

// Numbers at any place of EXIF data, of the byte order that they state.
class TiffNumbers {
 public:
  TiffNumbers(absl::Span<const uint8_t> bytes, bool big_endian)
      : bytes_(bytes), big_endian_(big_endian) {}

  // The number of `size` bytes at `offset`; none if it is not all there.
  std::optional<uint32_t> At(size_t offset, size_t size) const {
    if (offset > bytes_.size() || size > bytes_.size() - offset) {
      return std::nullopt;
    }
    uint32_t number = 0;
    for (size_t i = 0; i < size; ++i) {
      number = number << 8 | bytes_[offset + (big_endian_ ? i : size - 1 - i)];
    }
    return number;
  }

 private:
  const absl::Span<const uint8_t> bytes_;
  const bool big_endian_;
};

// The orientation in the directory's entry at `offset`, if it is there.
std::optional<int> OrientationIn(const TiffNumbers& numbers, size_t offset) {
  if (numbers.At(offset, 2) != kOrientationTag ||
      numbers.At(offset + 2, 2) != kShortType ||
      numbers.At(offset + 4, 4) != 1u) {
    return std::nullopt;
  }
  const std::optional<uint32_t> value = numbers.At(offset + 8, 2);
  if (!value.has_value() || *value < 1 || *value > 8) return std::nullopt;
  return static_cast<int>(*value);
}

// The body of the first EXIF segment; empty if there is none before the pixels.
absl::Span<const uint8_t> ExifOfJpeg(absl::Span<const uint8_t> jpeg) {
  size_t at = 2;
  while (at + 4 <= jpeg.size() && jpeg[at] == 0xff) {
    const uint8_t marker = jpeg[at + 1];
    if (marker == 0xff) {  // Any number of them may fill the space between.
      ++at;
      continue;
    }
    if (marker == kStartOfScan || marker == kEndOfImage) break;
    const size_t length = size_t{jpeg[at + 2]} << 8 | jpeg[at + 3];
    if (length < 2 || length > jpeg.size() - at - 2) break;
    const absl::Span<const uint8_t> body = jpeg.subspan(at + 4, length - 2);
    if (marker == kExifSegment && StartsWith(body, kExifName)) {
      return body.subspan(kExifName.size());
    }
    at += 2 + length;
  }
  return {};
}

}  // namespace

int ExifOrientation(absl::Span<const uint8_t> exif) {
  const bool big_endian = StartsWith(exif, absl::string_view("MM\0*", 4));
  if (!big_endian && !StartsWith(exif, absl::string_view("II*\0", 4))) {
    return kUpright;
  }
  const TiffNumbers numbers(exif, big_endian);
  const std::optional<uint32_t> directory = numbers.At(4, 4);
  if (!directory.has_value()) return kUpright;
  const uint32_t num_entries = numbers.At(*directory, 2).value_or(0);
  for (size_t i = 0; i < num_entries; ++i) {
    const std::optional<int> orientation =
        OrientationIn(numbers, *directory + 2 + i * kDirectoryEntryBytes);
    if (orientation.has_value()) return *orientation;
  }
  return kUpright;
}

int JpegOrientation(absl::Span<const uint8_t> jpeg) {
  return ExifOrientation(ExifOfJpeg(jpeg));
}

}  // namespace muster
