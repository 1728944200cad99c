#include "worker/input/stream/parts_stream.h"

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace muster {

absl::StatusOr<std::unique_ptr<PartsStream>> PartsStream::Open(
    const DataSetType& type, const DataSetRequest& request, int64_t num_classes,
    std::unique_ptr<RowMapper> mapper) {
  ASSIGN_OR_RETURN(HalfParts half, FindParts(type, request));
  auto stream = absl::WrapUnique(new PartsStream(
      type, request, std::move(half), num_classes, std::move(mapper)));
  RETURN_IF_ERROR(stream->Begin());
  return stream;
}

absl::Status PartsStream::Begin() {
  row_ = 0;
  return OpenPart(0);
}

absl::Status PartsStream::OpenPart(size_t index) {
  index_ = index;
  absl::Span<const Column> known;
  if (columns_.has_value()) known = columns_->columns();
  ASSIGN_OR_RETURN(part_, OpenPartLike(type_.open_in_order, request_,
                                       half_.parts[index], known));
  if (columns_.has_value() || part_->columns().empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(columns_, ExampleColumns::Create(request_, *part_));
  return absl::OkStatus();
}

absl::StatusOr<bool> PartsStream::Next(StreamRecord* record) {
  record->bad = absl::OkStatus();
  while (true) {
    ASSIGN_OR_RETURN(const bool more, part_->Next(record));
    if (more) break;
    if (index_ + 1 == half_.parts.size()) return false;
    RETURN_IF_ERROR(OpenPart(index_ + 1));
  }
  record->file = index_;
  record->row = row_++;
  return true;
}

absl::Status PartsStream::Decode(const StreamRecord& record, int64_t epoch,
                                 const ExampleMemory& into) const {
  const auto read = [&](const ExampleMemory& stored) {
    return DecodeStored(record, stored);
  };
  const absl::Status status = mapper_ == nullptr
                                  ? read(into)
                                  : mapper_->Map(record.row, epoch, read, into);
  if (status.ok()) return status;
  return AtPlace(status,
                 absl::StrCat(type_.place_name, " ", record.place, " of '",
                              half_.parts[record.file].back(), "'"));
}

absl::Status PartsStream::DecodeStored(const StreamRecord& record,
                                       const ExampleMemory& into) const {
  RETURN_IF_ERROR(record.bad);
  if (!columns_.has_value()) {
    return absl::DataLossError("no row before this one was good");
  }
  // A thread's own: nothing is allocated from row to row.
  thread_local Row row;
  row.cells.resize(columns_->columns().size());
  const LabelKind kind = request_.labels.kind;
  const bool has_class = kind == LabelKind::kClass && into.label != nullptr;
  const bool has_targets =
      kind == LabelKind::kTargets && into.targets != nullptr;
  RETURN_IF_ERROR(type_.parse(
      columns_->columns(), record,
      has_class || has_targets ? columns_->all() : columns_->values(), &row));
  if (has_class) RETURN_IF_ERROR(ReadClass(row, into.label));
  if (has_targets) RETURN_IF_ERROR(columns_->ReadTargets(row, into.targets));
  return columns_->ReadValues(row, into.values);
}

absl::Status PartsStream::ReadClass(const Row& row, int32_t* label) const {
  const absl::StatusOr<int32_t> found =
      columns_->ReadClass(row, /*names=*/nullptr);
  if (!found.ok()) {
    const absl::Status& error = found.status();
    if (!columns_->has_texts()) return error;
    return absl::Status(
        error.code(),
        absl::StrCat(error.message(),
                     "; the classes of a stream are numbers, because their "
                     "names are not known before all rows are: write numbers, "
                     "or leave input.stream out"));
  }
  if (*found >= num_classes_) {
    return absl::InvalidArgumentError(
        absl::StrCat("a label must be a class from 0 to ", num_classes_ - 1,
                     ", one for each of the model's outputs, found ", *found));
  }
  *label = *found;
  return absl::OkStatus();
}

}  // namespace muster
