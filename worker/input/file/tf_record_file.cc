#include "worker/input/file/tf_record_file.h"

#include <cassert>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "common/base/status_macros.h"
#include "worker/input/file/tf_record_reader.h"

namespace muster {
namespace {

constexpr int64_t kFrameBytes = kTfRecordHeadBytes + kTfRecordCrcBytes;

absl::Status CutShort(int64_t wanted, int64_t found) {
  return absl::DataLossError(absl::StrCat("the file is cut short: wanted ",
                                          wanted, " bytes, found ", found));
}

// The length of record `row`, at `begin`, of which the file has all.
absl::StatusOr<int64_t> ReadLength(const FileBytes& bytes, int64_t row,
                                   int64_t begin) {
  const int64_t left = bytes.size() - begin;
  if (left < kFrameBytes) return CutShort(kFrameBytes, left);
  uint8_t head[kTfRecordHeadBytes];
  RETURN_IF_ERROR(bytes.ReadAt(begin, absl::MakeSpan(head)));
  ASSIGN_OR_RETURN(const int64_t length, TfRecordLength(head, row));
  const int64_t wanted = kFrameBytes + length;
  if (wanted > left) return CutShort(wanted, left);
  return length;
}

}  // namespace

absl::StatusOr<TfRecordFile> TfRecordFile::Open(const std::string& path,
                                                WorkProgress* progress) {
  ASSIGN_OR_RETURN(FileBytes bytes, FileBytes::Open(path));
  TfRecordFile file(std::move(bytes));
  RETURN_IF_ERROR(file.Index(progress));
  return file;
}

TfRecordFile::TfRecordFile(FileBytes bytes) : bytes_(std::move(bytes)) {}

absl::Status TfRecordFile::Index(WorkProgress* progress) {
  for (int64_t begin = 0; begin < bytes_.size();) {
    const absl::StatusOr<int64_t> length =
        ReadLength(bytes_, num_rows(), begin);
    if (!length.ok()) {
      return Annotate(length.status(),
                      absl::StrCat("reading ", Place(num_rows())));
    }
    begin += kFrameBytes + *length;
    ends_.push_back(begin);
    if (progress != nullptr) progress->AddRow();
  }
  return absl::OkStatus();
}

absl::Status TfRecordFile::Read(int64_t row, std::string* record) const {
  assert(row >= 0 && row < num_rows());
  const int64_t begin = Begin(row) + kTfRecordHeadBytes;
  record->resize(static_cast<size_t>(ends_[row] - begin));
  const absl::Span<uint8_t> framed(reinterpret_cast<uint8_t*>(record->data()),
                                   record->size());
  RETURN_IF_ERROR(Annotate(bytes_.ReadAt(begin, framed),
                           absl::StrCat("reading ", Place(row))));
  if (!HasItsCrc(framed)) {
    return absl::DataLossError(
        absl::StrCat("reading ", Place(row), ": its data has a wrong CRC"));
  }
  record->resize(record->size() - kTfRecordCrcBytes);
  return absl::OkStatus();
}

std::string TfRecordFile::Place(int64_t row) const {
  return absl::StrCat("record ", row, " of '", bytes_.path(), "', at ",
                      Begin(row));
}

}  // namespace muster
