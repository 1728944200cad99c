#ifndef WORKER_INPUT_FILE_TF_RECORD_FILE_H_
#define WORKER_INPUT_FILE_TF_RECORD_FILE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/work_progress.h"
#include "worker/input/file/file_bytes.h"

namespace muster {

// A TFRecord file: records framed as common/summary/event_record.h has it,
// read by index. Of a plain file Open reads the lengths alone; a gzip file is
// in memory. Immutable, thread-safe.
class TfRecordFile {
 public:
  // Errors, with the path: FileBytes::Open's; DataLoss, with the offset of the
  // record (TfRecordLength's, cut short). `progress`, if there is one, counts
  // the records.
  static absl::StatusOr<TfRecordFile> Open(const std::string& path,
                                           WorkProgress* progress = nullptr);

  int64_t num_rows() const { return static_cast<int64_t>(ends_.size()); }

  // Reads record `row` into `record`, whose memory is used again.
  // REQUIRES: 0 <= row < num_rows().
  // Errors, with path and offset: DataLoss (a wrong CRC), FileBytes::ReadAt's.
  absl::Status Read(int64_t row, std::string* record) const;

  // "record 3 of 'data.tfrecord', at 1200", for messages.
  std::string Place(int64_t row) const;

 private:
  explicit TfRecordFile(FileBytes bytes);

  // Finds the records.
  absl::Status Index(WorkProgress* progress);

  // The beginning of record `row`.
  int64_t Begin(int64_t row) const { return row == 0 ? 0 : ends_[row - 1]; }

  FileBytes bytes_;
  // The end of each record.
  std::vector<int64_t> ends_;
};

}  // namespace muster

#endif  // WORKER_INPUT_FILE_TF_RECORD_FILE_H_
