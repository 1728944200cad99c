#include "worker/input/file/npz_member.h"

#include <zlib.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/types/span.h"
#include "common/base/escape.h"
#include "common/base/nearest_name.h"
#include "common/base/status_macros.h"
#include "common/process/memory_limit.h"
#include "worker/input/file/file_bytes.h"
#include "worker/input/file/little_endian.h"

namespace muster {
namespace {

// A member of a zip file, as its central directory has it.
struct ZipEntry {
  std::string name;
  uint16_t flags = 0;
  // 0 is stored, 8 deflated.
  uint16_t method = 0;
  uint32_t crc32 = 0;
  int64_t compressed_bytes = 0;
  int64_t bytes = 0;
  // The place of the local header in the file.
  int64_t header_offset = 0;
};

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

// Reads the central directory of a zip file, also one of zip64 (members or
// files of 4 GiB and more). Nothing in it is believed before it was compared
// with the size of the file; whether members lie in it, their reader checks.
// Errors, without the path: InvalidArgument (not a zip file, cut short,
// damaged, a directory of more than 16 MiB), FileBytes::ReadAt's.
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

constexpr uint64_t kLocalSignature = 0x04034b50;
constexpr int64_t kLocalBytes = 30;
constexpr uint16_t kEncryptedFlag = 1;
constexpr uint16_t kStored = 0;
constexpr uint16_t kDeflated = 8;
// Deflate makes at most 258 bytes of two bits (zlib's technical notes: 1032:1).
constexpr int64_t kMaxDeflateRatio = 1032;
constexpr int64_t kChunkBytes = 64 * 1024;
// Far below the limit of uInt.
constexpr int64_t kMaxInflateBytes = int64_t{1} << 30;
constexpr size_t kShownNames = 50;

std::string ArrayName(const ZipEntry& entry) {
  return std::string(absl::StripSuffix(entry.name, ".npy"));
}

std::vector<std::string> ArrayNames(const std::vector<ZipEntry>& entries) {
  std::vector<std::string> names;
  for (const ZipEntry& entry : entries) {
    names.push_back(EscapeForLog(ArrayName(entry)));
  }
  return names;
}

absl::StatusOr<ZipEntry> FindEntry(const FileBytes& file,
                                   absl::string_view name) {
  ASSIGN_OR_RETURN(const std::vector<ZipEntry> entries, ReadZipDirectory(file));
  for (const ZipEntry& entry : entries) {
    if (ArrayName(entry) == absl::StripSuffix(name, ".npy")) return entry;
  }
  std::vector<std::string> names = ArrayNames(entries);
  names.resize(std::min(names.size(), kShownNames));
  return absl::NotFoundError(UnknownNameMessage("array", name, names));
}

absl::Status CheckReadable(const ZipEntry& entry) {
  if ((entry.flags & kEncryptedFlag) != 0) {
    return absl::InvalidArgumentError("it is encrypted");
  }
  if (entry.method != kStored && entry.method != kDeflated) {
    return absl::InvalidArgumentError(absl::StrCat(
        "wanted it stored or deflated, found compression ", entry.method));
  }
  const bool possible =
      entry.method == kStored
          ? entry.bytes == entry.compressed_bytes
          : entry.bytes <=
                SaturatingProduct(entry.compressed_bytes, kMaxDeflateRatio);
  if (possible) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the zip directory is damaged: ", entry.compressed_bytes,
                   " bytes cannot be ", entry.bytes));
}

// The place of the bytes of `entry`, after its local header.
absl::StatusOr<int64_t> FindContent(const FileBytes& file,
                                    const ZipEntry& entry) {
  uint8_t header[kLocalBytes];
  RETURN_IF_ERROR(file.ReadAt(entry.header_offset, absl::MakeSpan(header)));
  if (LittleEndianAt(header, 0, 4) != kLocalSignature) {
    return absl::InvalidArgumentError(
        "the zip directory is damaged: it names a place that has no member");
  }
  const int64_t begin = entry.header_offset + kLocalBytes +
                        static_cast<int64_t>(LittleEndianAt(header, 26, 2) +
                                             LittleEndianAt(header, 28, 2));
  if (begin <= file.size() && entry.compressed_bytes <= file.size() - begin) {
    return begin;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("the file is cut short: wanted ", entry.compressed_bytes,
                   " bytes at ", begin, ", the file ends at ", file.size()));
}

absl::Status InflateError(const z_stream& stream) {
  return absl::InvalidArgumentError(absl::StrCat(
      "damaged deflate data: ",
      stream.msg == nullptr ? "it does not end where it should" : stream.msg));
}

// Inflates the bytes of `src` until `dst` is full, and nothing may follow.
absl::Status InflateAll(const FileBytes& src, z_stream& stream,
                        absl::Span<uint8_t> dst) {
  std::vector<uint8_t> chunk(kChunkBytes);
  int64_t read = 0;
  size_t done = 0;
  while (true) {
    if (stream.avail_in == 0 && read < src.size()) {
      const int64_t size = std::min(kChunkBytes, src.size() - read);
      RETURN_IF_ERROR(src.ReadAt(read, absl::MakeSpan(chunk.data(), size)));
      read += size;
      stream.next_in = chunk.data();
      stream.avail_in = static_cast<uInt>(size);
    }
    const size_t wanted = std::min<size_t>(kMaxInflateBytes, dst.size() - done);
    stream.next_out = dst.data() + done;
    stream.avail_out = static_cast<uInt>(wanted);
    const int result = inflate(&stream, Z_NO_FLUSH);
    done += wanted - stream.avail_out;
    if (result == Z_STREAM_END) break;
    // Z_BUF_ERROR: neither a byte is left nor a place for one.
    if (result != Z_OK) return InflateError(stream);
  }
  const bool whole =
      done == dst.size() && stream.avail_in == 0 && read == src.size();
  return whole ? absl::OkStatus() : InflateError(stream);
}

absl::StatusOr<std::vector<uint8_t>> Inflate(const FileBytes& src,
                                             const ZipEntry& entry) {
  RETURN_IF_ERROR(CheckMemory("inflating it", entry.bytes, OwnMemoryLimit()));
  z_stream stream = {};
  // Negative: deflate data without a header.
  if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) {
    return absl::ResourceExhaustedError("no memory to inflate it");
  }
  const absl::Cleanup end = [&stream] { inflateEnd(&stream); };
  std::vector<uint8_t> bytes(entry.bytes);
  RETURN_IF_ERROR(InflateAll(src, stream, absl::MakeSpan(bytes)));
  if (crc32_z(0, bytes.data(), bytes.size()) == entry.crc32) return bytes;
  return absl::DataLossError("its bytes do not have the checksum of the zip");
}

absl::StatusOr<FileBytes> ReadMember(FileBytes file, absl::string_view name) {
  ASSIGN_OR_RETURN(const ZipEntry entry, FindEntry(file, name));
  RETURN_IF_ERROR(CheckReadable(entry));
  ASSIGN_OR_RETURN(const int64_t begin, FindContent(file, entry));
  FileBytes content = std::move(file).Part(begin, entry.compressed_bytes);
  if (entry.method == kStored) return content;
  ASSIGN_OR_RETURN(std::vector<uint8_t> bytes, Inflate(content, entry));
  return FileBytes(content.path(), std::move(bytes));
}

}  // namespace

absl::StatusOr<std::vector<std::string>> ListNpz(const std::string& path) {
  ASSIGN_OR_RETURN(const FileBytes file, FileBytes::Open(path));
  const absl::StatusOr<std::vector<ZipEntry>> entries = ReadZipDirectory(file);
  if (!entries.ok()) {
    return Annotate(entries.status(), absl::StrCat("reading '", path, "'"));
  }
  return ArrayNames(*entries);
}

absl::StatusOr<NpyFile> OpenNpzMember(const std::string& path,
                                      absl::string_view name) {
  ASSIGN_OR_RETURN(FileBytes file, FileBytes::Open(path));
  absl::StatusOr<FileBytes> member = ReadMember(std::move(file), name);
  if (!member.ok()) {
    return Annotate(member.status(),
                    absl::StrCat("reading '", name, "' of '", path, "'"));
  }
  member->set_path(absl::StrCat(path, "/", name));
  return NpyFile::FromBytes(*std::move(member));
}

}  // namespace muster
