#ifndef WORKER_INPUT_FILE_CSV_READER_H_
#define WORKER_INPUT_FILE_CSV_READER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "worker/input/file/byte_source.h"

namespace muster {

// The records of a CSV or TSV file (RFC 4180), plain or gzip, one after the
// other: fields in quotes may hold delimiters, line breaks and doubled quotes;
// lines end in LF or CRLF, the last one perhaps in nothing. Empty lines and a
// byte order mark at the beginning are passed over. Holds one record at a
// time. Not thread-safe.
//   ASSIGN_OR_RETURN(CsvReader reader, CsvReader::Open(path, ','));
//   while (true) {
//     ASSIGN_OR_RETURN(const bool more, reader.Next());
//     if (!more) break;
//     Use(reader.fields());
//   }
class CsvReader {
 public:
  // Above any record; a quote that is never closed is found there.
  static constexpr size_t kMaxRecordBytes = size_t{16} << 20;
  static constexpr size_t kMaxFields = size_t{1} << 20;

  // Errors, with the path: ByteSource::Open's; InvalidArgument (UTF-16,
  // UTF-32).
  static absl::StatusOr<CsvReader> Open(const std::string& path,
                                        char delimiter);

  // Reads the next record; false if there is none. Errors, with path and line:
  // InvalidArgument (quotes that do not fit, a lone carriage return, more than
  // kMaxRecordBytes or kMaxFields), ByteSource's.
  absl::StatusOr<bool> Next();

  // Those of the record read last. Valid until Next is called.
  const std::vector<absl::string_view>& fields() const { return fields_; }

  // The line where the record read last begins, from 1.
  int64_t line() const { return record_line_; }
  // "'data.csv' line 7": where the record read last begins.
  std::string Place() const;

 private:
  enum class State { kFieldStart, kPlain, kQuoted, kQuoteEnd, kReturn };
  enum class Outcome { kMore, kRecord, kError };

  CsvReader(std::string path, char delimiter,
            std::unique_ptr<ByteSource> source);

  // Passes over a byte order mark.
  absl::Status BeginText();
  absl::StatusOr<bool> Refill();
  absl::Status BadRecord(absl::string_view reason) const;

  // Each goes on by the character `c`.
  Outcome Take(char c);
  Outcome TakePlain(char c);
  Outcome TakeQuoted(char c);
  Outcome TakeAfterQuote(char c);

  Outcome Fail(const char* reason);
  void EndField();
  Outcome EndLine();
  absl::StatusOr<bool> EndFile();
  void MakeFields();
  bool IsEmpty() const;

  std::string path_;
  char delimiter_;
  std::unique_ptr<ByteSource> source_;
  std::vector<uint8_t> buffer_;
  size_t next_ = 0;
  size_t end_ = 0;

  State state_ = State::kFieldStart;
  // The line that is read, from 1, and the one where the record begins.
  int64_t line_ = 1;
  int64_t record_line_ = 1;
  // The fields of the record, one behind the other, and where each ends.
  std::string text_;
  std::vector<size_t> ends_;
  std::vector<absl::string_view> fields_;
  // For Outcome::kError.
  const char* reason_ = "";
  // The record has a field in quotes: even if it is empty, so is not the line.
  bool has_quotes_ = false;
};

}  // namespace muster

#endif  // WORKER_INPUT_FILE_CSV_READER_H_
