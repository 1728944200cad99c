#include "worker/input/file/tf_record_reader.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/base/status_macros.h"
#include "common/summary/event_record.h"
#include "worker/input/file/little_endian.h"

namespace muster {
namespace {

// A record's memory grows with what is there, so that a length that lies costs
// none.
constexpr int64_t kChunkBytes = int64_t{1} << 20;

// RFC 1950: deflate, of a window of 32 KiB, and a check by 31.
bool BeginsAsZlib(absl::Span<const uint8_t> bytes) {
  return bytes[0] == 0x78 && (bytes[0] * 256 + bytes[1]) % 31 == 0;
}

}  // namespace

bool HasItsCrc(absl::Span<const uint8_t> framed) {
  const size_t size = framed.size() - kTfRecordCrcBytes;
  const absl::string_view data(reinterpret_cast<const char*>(framed.data()),
                               size);
  return MaskedCrc32c(data) == LittleEndianAt(framed, size, kTfRecordCrcBytes);
}

absl::StatusOr<int64_t> TfRecordLength(absl::Span<const uint8_t> head,
                                       int64_t row) {
  if (!HasItsCrc(head)) {
    if (row == 0 && BeginsAsZlib(head)) {
      return absl::InvalidArgumentError(
          "the file is compressed by zlib (TFRecordOptions of TensorFlow with "
          "\"ZLIB\"), which is not read: write it with \"GZIP\", or without "
          "compression");
    }
    return absl::DataLossError(
        "the length has a wrong CRC; is this a TFRecord file?");
  }
  const uint64_t length = LittleEndianAt(head, 0, kTfRecordLengthBytes);
  if (length <= INT32_MAX) return static_cast<int64_t>(length);
  return absl::DataLossError(
      absl::StrCat("wanted at most ", INT32_MAX, " bytes, found ", length));
}

absl::StatusOr<TfRecordReader> TfRecordReader::Open(const std::string& path) {
  absl::StatusOr<std::unique_ptr<ByteSource>> source = ByteSource::Open(path);
  if (source.ok()) return TfRecordReader(path, *std::move(source));
  return Annotate(source.status(), absl::StrCat("reading '", path, "'"));
}

TfRecordReader::TfRecordReader(std::string path,
                               std::unique_ptr<ByteSource> source)
    : path_(std::move(path)), source_(std::move(source)) {}

absl::StatusOr<bool> TfRecordReader::Next(std::string* record,
                                          absl::Status* bad) {
  ++row_;
  *bad = absl::OkStatus();
  const absl::StatusOr<bool> more = ReadRecord(record);
  if (!more.ok()) {
    return Annotate(more.status(),
                    absl::StrCat("reading record ", row_, " of '", path_, "'"));
  }
  if (!*more) return false;
  const absl::Span<const uint8_t> framed(
      reinterpret_cast<const uint8_t*>(record->data()), record->size());
  if (!HasItsCrc(framed)) {
    *bad = absl::DataLossError("its data has a wrong CRC");
  }
  record->resize(record->size() - kTfRecordCrcBytes);
  return true;
}

absl::StatusOr<bool> TfRecordReader::ReadRecord(std::string* record) {
  uint8_t head[kTfRecordHeadBytes];
  ASSIGN_OR_RETURN(const bool more, Read(absl::MakeSpan(head)));
  if (!more) return false;
  ASSIGN_OR_RETURN(const int64_t length, TfRecordLength(head, row_));
  const int64_t size = length + kTfRecordCrcBytes;
  for (int64_t done = 0; done < size;) {
    const int64_t chunk = std::min(kChunkBytes, size - done);
    record->resize(done + chunk);
    ASSIGN_OR_RETURN(const bool is_there,
                     Read({reinterpret_cast<uint8_t*>(record->data()) + done,
                           static_cast<size_t>(chunk)}));
    if (!is_there) return absl::DataLossError("the file is cut short");
    done += chunk;
  }
  return true;
}

absl::StatusOr<bool> TfRecordReader::Read(absl::Span<uint8_t> dst) {
  ASSIGN_OR_RETURN(const size_t got, source_->Read(dst.data(), dst.size()));
  if (got == dst.size()) return true;
  if (got == 0) return false;
  return absl::DataLossError(absl::StrCat("the file is cut short: wanted ",
                                          dst.size(), " bytes, found ", got));
}

}  // namespace muster
