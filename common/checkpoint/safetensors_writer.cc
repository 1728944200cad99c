#include "common/checkpoint/safetensors_writer.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/crc32c.h"
#include "common/base/status_macros.h"

namespace muster {
namespace {

constexpr int64_t kReadBytes = 1 << 20;

}  // namespace

SafetensorsWriter::SafetensorsWriter(FileSystem* file_system, std::string path,
                                     std::unique_ptr<WritableFile> file,
                                     std::vector<SafetensorsEntry> entries)
    : file_system_(file_system),
      path_(std::move(path)),
      entries_(std::move(entries)),
      file_(std::move(file)),
      tensor_bytes_(entries_.size(), 0),
      crcs_(entries_.size(), 0) {}

absl::StatusOr<std::unique_ptr<SafetensorsWriter>> SafetensorsWriter::Create(
    FileSystem* file_system, const std::string& path,
    std::vector<SafetensorsEntry> tensors) {
  ASSIGN_OR_RETURN(std::vector<SafetensorsEntry> entries,
                   LayOutSafetensors(std::move(tensors)));
  const std::string header = FormatSafetensorsHeader(entries);
  ASSIGN_OR_RETURN(std::unique_ptr<WritableFile> file,
                   file_system->CreateFile(path));
  std::unique_ptr<SafetensorsWriter> writer(new SafetensorsWriter(
      file_system, path, std::move(file), std::move(entries)));
  RETURN_IF_ERROR(writer->file_->Append(header));
  writer->header_bytes_ = static_cast<int64_t>(header.size());
  writer->header_crc_ = Crc32c(header);
  return writer;
}

absl::Status SafetensorsWriter::CheckWrite(int64_t size, int64_t at,
                                           int64_t end) const {
  if (file_ == nullptr) {
    return absl::FailedPreconditionError(
        absl::StrCat("write '", path_, "': finished, or failed before"));
  }
  if (size <= end - at) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("write '", path_, "': ", size, " bytes at ", at,
                   ", but its tensors end at ", end));
}

absl::Status SafetensorsWriter::Append(absl::string_view data) {
  RETURN_IF_ERROR(
      CheckWrite(static_cast<int64_t>(data.size()), written_, data_bytes()));
  const absl::Status status = file_->Append(data);
  if (!status.ok()) {
    file_.reset();
    return status;
  }
  while (!data.empty()) {
    const auto rest = static_cast<size_t>(entries_[current_].end - written_);
    const absl::string_view piece = data.substr(0, rest);
    Count(current_, piece);
    data.remove_prefix(piece.size());
    if (piece.size() == rest) ++current_;
  }
  return absl::OkStatus();
}

absl::Status SafetensorsWriter::AppendTo(size_t entry, absl::string_view data) {
  const int64_t at = entries_[entry].begin + tensor_bytes_[entry];
  RETURN_IF_ERROR(
      CheckWrite(static_cast<int64_t>(data.size()), at, entries_[entry].end));
  const absl::Status status = file_->WriteAt(header_bytes_ + at, data);
  if (!status.ok()) {
    file_.reset();
    return status;
  }
  Count(entry, data);
  return absl::OkStatus();
}

void SafetensorsWriter::Count(size_t entry, absl::string_view data) {
  crcs_[entry] = ExtendCrc32c(crcs_[entry], data);
  tensor_bytes_[entry] += static_cast<int64_t>(data.size());
  written_ += static_cast<int64_t>(data.size());
}

absl::Status SafetensorsWriter::Finish() {
  if (file_ == nullptr) {
    return absl::FailedPreconditionError(
        absl::StrCat("finish '", path_, "': finished, or failed before"));
  }
  if (written_ != data_bytes()) {
    return absl::FailedPreconditionError(
        absl::StrCat("finish '", path_, "': ", written_, " bytes of tensors, ",
                     data_bytes(), " were declared"));
  }
  const absl::Status status = file_->Sync();
  file_.reset();
  RETURN_IF_ERROR(status);
  return Verify();
}

absl::Status SafetensorsWriter::Verify() const {
  ASSIGN_OR_RETURN(const std::unique_ptr<ReadableFile> file,
                   file_system_->OpenFile(path_));
  if (file->size_bytes() != file_bytes()) {
    return absl::DataLossError(
        absl::StrCat("verify '", path_, "': ", file_bytes(), " bytes written, ",
                     file->size_bytes(), " found"));
  }
  ASSIGN_OR_RETURN(const uint32_t header, FileCrc32c(*file, 0, header_bytes_));
  bool is_same = header == header_crc_;
  for (size_t i = 0; is_same && i < entries_.size(); ++i) {
    ASSIGN_OR_RETURN(const uint32_t crc,
                     FileCrc32c(*file, header_bytes_ + entries_[i].begin,
                                entries_[i].end - entries_[i].begin));
    is_same = crc == crcs_[i];
  }
  if (is_same) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(
      "verify '", path_, "': its bytes are not those that were written"));
}

absl::StatusOr<uint32_t> FileCrc32c(const ReadableFile& file, int64_t offset,
                                    int64_t length) {
  std::string buffer(static_cast<size_t>(std::min(length, kReadBytes)), '\0');
  uint32_t crc = 0;
  while (length > 0) {
    const int64_t size = std::min(length, kReadBytes);
    RETURN_IF_ERROR(file.ReadAt(offset, size, buffer.data()));
    crc = ExtendCrc32c(
        crc, absl::string_view(buffer.data(), static_cast<size_t>(size)));
    offset += size;
    length -= size;
  }
  return crc;
}

}  // namespace muster
