// Record files: TensorBoard's events, TFRecord and the tf.Examples in it; also
// with the CRCs of what they hold.
#include <algorithm>
#include <string>
#include <vector>

#include "common/summary/event_record.h"
#include "tests/fuzz/fuzz.h"
#include "worker/input/data_set/data_set_registry.h"
#include "worker/input/data_set/example_columns.h"
#include "worker/input/file/little_endian.h"
#include "worker/input/file/tf_example.h"
#include "worker/input/file/tf_record_file.h"
#include "worker/input/file/tf_record_reader.h"

namespace muster {
namespace {

void TryExample(absl::string_view record) {
  TfExample example;
  if (!example.Parse(record).ok()) return;
  for (const char* const name : {"image", "x", "label"}) {
    const auto values = example.Get(name);
    Want(!values.ok() || example.Has(name), "a feature that is there");
  }
}

// The file as a part of a data set, whose rows a model of [1, 2, 3] reads.
void TryPart(const std::string& path) {
  DataSetRequest request;
  request.example_shape = {1, 2, 3};
  request.spec.set_on_bad_record(SKIP);
  const auto type = DataSetRegistry::Find("tfrecord");
  const auto part = Wanted(type, "the type").open(request, {path}, {});
  if (!part.ok() || (*part)->columns().empty()) return;
  const auto columns = ExampleColumns::Create(request, **part);
  if (!columns.ok()) return;
  Row row;
  row.cells.resize((*part)->columns().size());
  std::vector<float> values(request.example_shape.num_elements());
  for (int64_t i = 0; i < *(*part)->num_rows(); ++i) {
    if (!(*part)->Read(i, columns->all(), &row).ok()) continue;
    columns->ReadValues(row, values.data()).IgnoreError();
    const auto label = columns->ReadClass(row, /*names=*/nullptr);
    Want(!label.ok() || *label >= 0, "a class");
  }
}

// Both readers find the same.
void TryFile(absl::string_view bytes) {
  const InputFile file(bytes);
  TryPart(file.path());
  const auto rows = TfRecordFile::Open(file.path());
  auto reader = TfRecordReader::Open(file.path());
  if (!reader.ok()) return;
  std::string record, same;
  absl::Status bad;
  for (int64_t row = 0;; ++row) {
    const auto more = reader->Next(&record, &bad);
    if (!more.ok()) return Want(!rows.ok(), "an error of both readers");
    if (!*more) {
      return Want(Wanted(rows, "a whole file").num_rows() == row, "all rows");
    }
    if (rows.ok()) {
      Want(row < rows->num_rows(), "no more rows");
      Want(rows->Read(row, &same).ok() == bad.ok(), "the same outcome");
      Want(!bad.ok() || same == record, "the same record");
    }
    TryExample(record);
  }
}

// Writes the masked CRC of `size` bytes from `at` on behind them.
void MendCrc(size_t at, size_t size, std::string* file) {
  const uint32_t crc = MaskedCrc32c(absl::string_view(*file).substr(at, size));
  for (int i = 0; i < kTfRecordCrcBytes; ++i) {
    (*file)[at + size + i] = static_cast<char>(crc >> (8 * i));
  }
}

// libFuzzer does not guess checksums.
std::string WithCrcs(absl::string_view input) {
  std::string file(input);
  size_t at = 0;
  while (file.size() - at >= kTfRecordHeadBytes) {
    MendCrc(at, kTfRecordLengthBytes, &file);
    const uint64_t length =
        LittleEndianAt(AsBytes(file), at, kTfRecordLengthBytes);
    const size_t left = file.size() - at - kTfRecordHeadBytes;
    if (left < kTfRecordCrcBytes || length > left - kTfRecordCrcBytes) break;
    MendCrc(at + kTfRecordHeadBytes, length, &file);
    at += kTfRecordHeadBytes + length + kTfRecordCrcBytes;
  }
  return file;
}

// Written records are read.
void TryWritten(absl::string_view record) {
  std::string bytes;
  AppendRecord(record, &bytes);
  AppendRecord(record, &bytes);
  const InputFile file(bytes);
  const auto rows = TfRecordFile::Open(file.path());
  Want(Wanted(rows, "a file that was written").num_rows() == 2, "two rows");
  std::string again;
  Want(rows->Read(1, &again).ok() && again == record, "the same record");
}

}  // namespace

void TryInput(absl::string_view input) {
  TryFile(input);
  TryFile(WithCrcs(input));
  TryExample(input);
  TryWritten(input);
}

}  // namespace muster
