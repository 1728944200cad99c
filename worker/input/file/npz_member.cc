#include "worker/input/file/npz_member.h"

#include <zlib.h>

#include <algorithm>
#include <cstdint>
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
#include "worker/input/file/zip_directory.h"

namespace muster {
namespace {

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
