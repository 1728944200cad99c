#include "worker/input/stream/file_stream.h"

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace muster {

absl::Status FileStream::Begin() {
  file_ = 0;
  row_ = 0;
  return format_->Open(options_.paths[0]);
}

absl::StatusOr<bool> FileStream::Next(StreamRecord* record) {
  record->bad = absl::OkStatus();
  while (true) {
    ASSIGN_OR_RETURN(const bool more, format_->Next(record));
    if (more) break;
    if (file_ + 1 == options_.paths.size()) return false;
    RETURN_IF_ERROR(format_->Open(options_.paths[++file_]));
  }
  record->file = file_;
  record->row = row_++;
  return true;
}

absl::Status FileStream::DecodeStored(const StreamRecord& record,
                                      const ExampleMemory& into) const {
  RETURN_IF_ERROR(record.bad);
  RETURN_IF_ERROR(format_->Decode(record, into));
  if (into.label == nullptr ||
      (*into.label >= 0 && *into.label < options_.num_classes)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "a label must be a class from 0 to ", options_.num_classes - 1,
      ", one for each of the model's outputs, found ", *into.label));
}

absl::Status FileStream::Decode(const StreamRecord& record, int64_t epoch,
                                const ExampleMemory& into) const {
  const auto read = [&](const ExampleMemory& stored) {
    return DecodeStored(record, stored);
  };
  const absl::Status status = mapper_ == nullptr
                                  ? read(into)
                                  : mapper_->Map(record.row, epoch, read, into);
  if (status.ok()) return status;
  return Annotate(
      status, absl::StrCat("reading ", format_->place_name(), " ", record.place,
                           " of '", options_.paths[record.file], "'"));
}

}  // namespace muster
