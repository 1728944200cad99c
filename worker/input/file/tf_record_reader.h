#ifndef WORKER_INPUT_FILE_TF_RECORD_READER_H_
#define WORKER_INPUT_FILE_TF_RECORD_READER_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "worker/input/file/byte_source.h"

namespace muster {

// The frame of a record: common/summary/event_record.h has it.
inline constexpr int64_t kTfRecordLengthBytes = 8;
inline constexpr int64_t kTfRecordCrcBytes = 4;
inline constexpr int64_t kTfRecordHeadBytes =
    kTfRecordLengthBytes + kTfRecordCrcBytes;

// True if the last bytes of `framed` are the masked CRC of those before.
bool HasItsCrc(absl::Span<const uint8_t> framed);

// The length in the head of record `row`. Errors: DataLoss (a wrong CRC, or
// above what protobuf parses); InvalidArgument (the file is zlib data).
absl::StatusOr<int64_t> TfRecordLength(absl::Span<const uint8_t> head,
                                       int64_t row);

// The records of a TFRecord file, plain or gzip, one after the other; holds one
// at a time. Not thread-safe.
class TfRecordReader {
 public:
  // Errors, with the path: ByteSource::Open's.
  static absl::StatusOr<TfRecordReader> Open(const std::string& path);

  // Reads the next record; false if there is none. `bad` is why it is damaged,
  // without the place, where there is a next one all the same. Errors, with
  // path and record: DataLoss (a wrong length, cut short), ByteSource::Read's.
  absl::StatusOr<bool> Next(std::string* record, absl::Status* bad);

 private:
  TfRecordReader(std::string path, std::unique_ptr<ByteSource> source);

  absl::StatusOr<bool> ReadRecord(std::string* record);
  // Fills `dst`, or nothing of it at the end of the file: false.
  absl::StatusOr<bool> Read(absl::Span<uint8_t> dst);

  std::string path_;
  std::unique_ptr<ByteSource> source_;
  int64_t row_ = -1;
};

}  // namespace muster

#endif  // WORKER_INPUT_FILE_TF_RECORD_READER_H_
