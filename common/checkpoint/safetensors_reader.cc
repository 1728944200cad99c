#include "common/checkpoint/safetensors_reader.h"

#include <array>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/safetensors_writer.h"

namespace muster {
namespace {

// The length of the JSON text, checked against the file's size before anything
// of that size is allocated.
absl::StatusOr<int64_t> ReadHeaderLength(const ReadableFile& file) {
  const int64_t size = file.size_bytes();
  if (size < kSafetensorsPrefixBytes) {
    return absl::DataLossError(
        absl::StrCat(size, " bytes are too few for the length of the header"));
  }
  std::array<unsigned char, kSafetensorsPrefixBytes> bytes;
  RETURN_IF_ERROR(file.ReadAt(0, kSafetensorsPrefixBytes,
                              reinterpret_cast<char*>(bytes.data())));
  uint64_t length = 0;
  for (size_t i = bytes.size(); i > 0; --i) length = length << 8 | bytes[i - 1];
  if (length > static_cast<uint64_t>(kMaxSafetensorsHeaderBytes)) {
    return absl::DataLossError(absl::StrCat("a header of ", length,
                                            " bytes, the format allows ",
                                            kMaxSafetensorsHeaderBytes));
  }
  if (static_cast<int64_t>(length) > size - kSafetensorsPrefixBytes) {
    return absl::DataLossError(
        absl::StrCat("a header of ", length, " bytes in a file of ", size));
  }
  return static_cast<int64_t>(length);
}

absl::StatusOr<SafetensorsHeader> ReadHeader(const ReadableFile& file,
                                             int64_t length) {
  std::string json(static_cast<size_t>(length), '\0');
  RETURN_IF_ERROR(file.ReadAt(kSafetensorsPrefixBytes, length, json.data()));
  return ParseSafetensorsHeader(
      json, file.size_bytes() - kSafetensorsPrefixBytes - length);
}

}  // namespace

SafetensorsReader::SafetensorsReader(std::unique_ptr<ReadableFile> file,
                                     std::string path, int64_t data_start,
                                     SafetensorsHeader header)
    : file_(std::move(file)),
      path_(std::move(path)),
      data_start_(data_start),
      header_(std::move(header)) {
  for (const SafetensorsEntry& entry : header_.entries) {
    by_name_[entry.name] = &entry;
  }
}

absl::StatusOr<std::unique_ptr<SafetensorsReader>> SafetensorsReader::Open(
    FileSystem* file_system, const std::string& path) {
  ASSIGN_OR_RETURN(std::unique_ptr<ReadableFile> file,
                   file_system->OpenFile(path));
  const std::string context = absl::StrCat("read '", path, "'");
  // A read that failed has said so.
  const auto about = [&context](const absl::Status& status) {
    return absl::StartsWith(status.message(), context)
               ? status
               : Annotate(status, context);
  };
  const absl::StatusOr<int64_t> length = ReadHeaderLength(*file);
  if (!length.ok()) return about(length.status());
  absl::StatusOr<SafetensorsHeader> header = ReadHeader(*file, *length);
  if (!header.ok()) return about(header.status());
  return std::unique_ptr<SafetensorsReader>(new SafetensorsReader(
      std::move(file), path, kSafetensorsPrefixBytes + *length,
      *std::move(header)));
}

absl::StatusOr<const SafetensorsEntry*> SafetensorsReader::Find(
    absl::string_view name) const {
  const auto it = by_name_.find(name);
  if (it != by_name_.end()) return it->second;
  return absl::NotFoundError(absl::StrCat("'", path_, "' has no tensor '",
                                          absl::CHexEscape(name), "'"));
}

absl::Status SafetensorsReader::Read(absl::string_view name, int64_t offset,
                                     int64_t length, void* dst) const {
  ASSIGN_OR_RETURN(const SafetensorsEntry* entry, Find(name));
  const int64_t elements = entry->shape.num_elements();
  if (offset < 0 || length < 0 || offset > elements ||
      length > elements - offset) {
    return absl::InvalidArgumentError(absl::StrCat(
        "read elements ", offset, " to ", offset, " + ", length, " of tensor '",
        name, "' in '", path_, "', which has ", elements));
  }
  const int64_t size = FormatDtypeBytes(entry->format_dtype);
  if (size == 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "read tensor '", absl::CHexEscape(name), "' in '", path_, "': dtype '",
        absl::CHexEscape(entry->format_dtype), "' is not supported"));
  }
  return file_->ReadAt(data_start_ + entry->begin + offset * size,
                       length * size, static_cast<char*>(dst));
}

absl::StatusOr<uint32_t> SafetensorsReader::TensorCrc32c(
    absl::string_view name) const {
  ASSIGN_OR_RETURN(const SafetensorsEntry* entry, Find(name));
  return FileCrc32c(*file_, data_start_ + entry->begin,
                    entry->end - entry->begin);
}

}  // namespace muster
