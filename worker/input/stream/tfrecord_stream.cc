#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "common/base/status_macros.h"
#include "worker/input/data_set/tf_example_row.h"
#include "worker/input/file/tf_example.h"
#include "worker/input/file/tf_record_reader.h"
#include "worker/input/stream/stream_format.h"

namespace muster {
namespace {

// TFRecord files of tf.Examples.
class TfRecordStream : public StreamFormat {
 public:
  explicit TfRecordStream(const DataSetRequest& request) : request_(request) {}

  static absl::StatusOr<std::unique_ptr<StreamFormat>> Create(
      const DataSetRequest& request) {
    return std::make_unique<TfRecordStream>(request);
  }

  absl::Status Open(const std::string& path) override;
  absl::StatusOr<bool> Next(StreamRecord* record) override;
  absl::string_view place_name() const override { return "record"; }
  absl::Status Decode(const StreamRecord& record,
                      const ExampleMemory& into) const override;

 private:
  // The kind that the first good record shows.
  absl::Status TakeFirst(const std::string& record);

  const DataSetRequest request_;
  std::optional<TfRecordReader> reader_;
  // Records of this file that were read.
  int64_t read_ = 0;
  std::optional<TfExampleRow> row_;
};

absl::Status TfRecordStream::Open(const std::string& path) {
  ASSIGN_OR_RETURN(TfRecordReader reader, TfRecordReader::Open(path));
  reader_.emplace(std::move(reader));
  read_ = 0;
  return absl::OkStatus();
}

absl::StatusOr<bool> TfRecordStream::Next(StreamRecord* record) {
  ASSIGN_OR_RETURN(const bool more,
                   reader_->Next(&record->bytes, &record->bad));
  if (!more) return false;
  record->place = read_++;
  if (!row_.has_value() && record->bad.ok()) {
    record->bad = TakeFirst(record->bytes);
  }
  return true;
}

absl::Status TfRecordStream::TakeFirst(const std::string& record) {
  TfExample example;
  RETURN_IF_ERROR(example.Parse(record));
  ASSIGN_OR_RETURN(row_, TfExampleRow::Create(request_, example));
  return absl::OkStatus();
}

absl::Status TfRecordStream::Decode(const StreamRecord& record,
                                    const ExampleMemory& into) const {
  // A thread's own: nothing is allocated from row to row.
  thread_local TfExample example;
  RETURN_IF_ERROR(example.Parse(record.bytes));
  RETURN_IF_ERROR(row_->ReadLabel(example, into));
  return row_->ReadValues(example, into.values);
}

[[maybe_unused]] const bool kRegistered = StreamRegistry::Register(
    "tfrecord",
    {{".tfrecord", ".tfrecords", ".tfrec"}, &TfRecordStream::Create});

}  // namespace
}  // namespace muster
