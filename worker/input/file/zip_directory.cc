#include "worker/input/file/zip_directory.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "common/base/status_macros.h"
#include "worker/input/file/little_endian.h"

namespace muster {
namespace {

// APPNOTE.TXT 6.3, sections 4.3.12 to 4.3.16 and 4.5.3.
constexpr uint64_t kEntrySignature = 0x02014b50;
constexpr uint64_t kEndSignature = 0x06054b50;
constexpr uint64_t kEnd64Signature = 0x06064b50;
constexpr uint64_t kLocatorSignature = 0x07064b50;
constexpr int64_t kEntryBytes = 46;
constexpr int64_t kEndBytes = 22;
constexpr int64_t kEnd64Bytes = 56;
constexpr int64_t kLocatorBytes = 20;
constexpr int64_t kMaxCommentBytes = 0xffff;
constexpr uint64_t kZip64ExtraId = 1;
// Says that the number is in the zip64 form.
constexpr uint64_t kElsewhere = 0xffffffff;

constexpr int64_t kMaxDirectoryBytes = int64_t{16} << 20;

using Bytes = absl::Span<const uint8_t>;

absl::Status Damaged(absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(
      "not a zip file, or one that is cut short or damaged: ", what));
}

absl::StatusOr<std::vector<uint8_t>> Read(const FileBytes& file, int64_t offset,
                                          int64_t size) {
  std::vector<uint8_t> bytes(size);
  RETURN_IF_ERROR(file.ReadAt(offset, absl::MakeSpan(bytes)));
  return bytes;
}

// The place of the directory in the file.
struct Place {
  uint64_t offset;
  uint64_t size;
};

// Reads what stands before the end record at `end_offset` in a file of zip64.
absl::StatusOr<Place> FindDirectory64(const FileBytes& file,
                                      int64_t end_offset) {
  if (end_offset < kLocatorBytes + kEnd64Bytes) {
    return Damaged("there is no zip64 end record");
  }
  ASSIGN_OR_RETURN(const std::vector<uint8_t> locator,
                   Read(file, end_offset - kLocatorBytes, kLocatorBytes));
  const uint64_t offset = LittleEndianAt(locator, 8, 8);
  if (LittleEndianAt(locator, 0, 4) != kLocatorSignature ||
      offset > static_cast<uint64_t>(end_offset - kEnd64Bytes)) {
    return Damaged("there is no zip64 end record");
  }
  ASSIGN_OR_RETURN(const std::vector<uint8_t> end,
                   Read(file, static_cast<int64_t>(offset), kEnd64Bytes));
  if (LittleEndianAt(end, 0, 4) != kEnd64Signature) {
    return Damaged("there is no zip64 end record");
  }
  return Place{LittleEndianAt(end, 48, 8), LittleEndianAt(end, 40, 8)};
}

// The end record is the last one whose comment reaches the end of the file.
std::optional<size_t> FindEndRecord(Bytes tail) {
  for (size_t at = tail.size() - kEndBytes + 1; at-- > 0;) {
    if (LittleEndianAt(tail, at, 4) == kEndSignature &&
        at + kEndBytes + LittleEndianAt(tail, at + 20, 2) == tail.size()) {
      return at;
    }
  }
  return std::nullopt;
}

absl::StatusOr<Place> FindDirectory(const FileBytes& file) {
  if (file.size() < kEndBytes) return Damaged("it has no end record");
  const int64_t tail_bytes =
      std::min(file.size(), kEndBytes + kMaxCommentBytes);
  ASSIGN_OR_RETURN(const std::vector<uint8_t> tail,
                   Read(file, file.size() - tail_bytes, tail_bytes));
  const std::optional<size_t> at = FindEndRecord(tail);
  if (!at.has_value()) return Damaged("it has no end record");
  const Place place = {LittleEndianAt(tail, *at + 16, 4),
                       LittleEndianAt(tail, *at + 12, 4)};
  if (place.offset != kElsewhere && place.size != kElsewhere) return place;
  return FindDirectory64(file,
                         file.size() - tail_bytes + static_cast<int64_t>(*at));
}

// Puts the numbers of a zip64 field into those that are kElsewhere.
absl::Status ReadExtra(Bytes extra, absl::Span<uint64_t* const> numbers) {
  while (extra.size() >= 4) {
    const uint64_t id = LittleEndianAt(extra, 0, 2);
    const size_t size = LittleEndianAt(extra, 2, 2);
    if (size > extra.size() - 4) return Damaged("an extra field is too long");
    Bytes field = extra.subspan(4, size);
    extra.remove_prefix(4 + size);
    if (id != kZip64ExtraId) continue;
    for (uint64_t* number : numbers) {
      if (*number != kElsewhere) continue;
      if (field.size() < 8) return Damaged("a zip64 field is too short");
      *number = LittleEndianAt(field, 0, 8);
      field.remove_prefix(8);
    }
  }
  return absl::OkStatus();
}

// Takes the first entry away from `rest`.
absl::StatusOr<ZipEntry> TakeEntry(Bytes& rest) {
  if (rest.size() < kEntryBytes ||
      LittleEndianAt(rest, 0, 4) != kEntrySignature) {
    return Damaged("the directory has no whole entry where one should be");
  }
  const size_t name_bytes = LittleEndianAt(rest, 28, 2);
  const size_t extra_bytes = LittleEndianAt(rest, 30, 2);
  const size_t size =
      kEntryBytes + name_bytes + extra_bytes + LittleEndianAt(rest, 32, 2);
  if (size > rest.size()) return Damaged("an entry ends after the directory");
  uint64_t bytes = LittleEndianAt(rest, 24, 4);
  uint64_t compressed_bytes = LittleEndianAt(rest, 20, 4);
  uint64_t header_offset = LittleEndianAt(rest, 42, 4);
  RETURN_IF_ERROR(ReadExtra(rest.subspan(kEntryBytes + name_bytes, extra_bytes),
                            {&bytes, &compressed_bytes, &header_offset}));
  if (std::max({bytes, compressed_bytes, header_offset}) > INT64_MAX) {
    return Damaged("an entry is too large");
  }
  ZipEntry entry;
  entry.name.assign(rest.begin() + kEntryBytes,
                    rest.begin() + kEntryBytes + name_bytes);
  entry.flags = static_cast<uint16_t>(LittleEndianAt(rest, 8, 2));
  entry.method = static_cast<uint16_t>(LittleEndianAt(rest, 10, 2));
  entry.crc32 = static_cast<uint32_t>(LittleEndianAt(rest, 16, 4));
  entry.bytes = static_cast<int64_t>(bytes);
  entry.compressed_bytes = static_cast<int64_t>(compressed_bytes);
  entry.header_offset = static_cast<int64_t>(header_offset);
  rest.remove_prefix(size);
  return entry;
}

}  // namespace

absl::StatusOr<std::vector<ZipEntry>> ReadZipDirectory(const FileBytes& file) {
  ASSIGN_OR_RETURN(const Place place, FindDirectory(file));
  const uint64_t file_bytes = static_cast<uint64_t>(file.size());
  if (place.offset > file_bytes || place.size > file_bytes - place.offset) {
    return Damaged("the directory ends after the file");
  }
  if (place.size > kMaxDirectoryBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("wanted a zip directory of at most ", kMaxDirectoryBytes,
                     " bytes, found one of ", place.size));
  }
  ASSIGN_OR_RETURN(const std::vector<uint8_t> directory,
                   Read(file, static_cast<int64_t>(place.offset),
                        static_cast<int64_t>(place.size)));
  std::vector<ZipEntry> entries;
  for (Bytes rest = directory; !rest.empty();) {
    ASSIGN_OR_RETURN(entries.emplace_back(), TakeEntry(rest));
  }
  return entries;
}

}  // namespace muster
