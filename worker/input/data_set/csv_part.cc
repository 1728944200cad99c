#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/memory/memory.h"
#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/base/status_macros.h"
#include "worker/input/data_set/csv_header.h"
#include "worker/input/data_set/data_set_registry.h"
#include "worker/input/file/csv_reader.h"

namespace muster {
namespace {

// Behind each field in Record::bytes. No field of a good row has it.
constexpr char kFieldEnd = '\0';

// A CSV or TSV file, from its first row to its end: columns of text.
class CsvPart : public Part {
 public:
  static absl::StatusOr<std::unique_ptr<Part>> Open(
      const DataSetRequest& request, const PartFiles& files,
      absl::Span<const Column> known);

  absl::StatusOr<bool> Next(Record* record) override;

 private:
  CsvPart(const PartFiles& files, std::vector<Column> columns, CsvReader reader)
      : Part(files, std::move(columns)), reader_(std::move(reader)) {}

  CsvReader reader_;
};

// ".gz" may follow the ending, and so may "-00000-of-00004".
char DelimiterOf(absl::string_view path) {
  path.remove_prefix(path.rfind('/') + 1);
  return absl::StrContains(absl::AsciiStrToLower(path), ".tsv") ? '\t' : ',';
}

absl::StatusOr<std::unique_ptr<Part>> CsvPart::Open(
    const DataSetRequest& request, const PartFiles& files,
    absl::Span<const Column> /*known*/) {
  const std::string& path = files[0];
  const char delimiter = DelimiterOf(path);
  ASSIGN_OR_RETURN(CsvReader reader, CsvReader::Open(path, delimiter));
  ASSIGN_OR_RETURN(const bool more, reader.Next());
  if (!more) {
    return absl::InvalidArgumentError(
        absl::StrCat("reading '", path, "': wanted rows, found an empty file"));
  }
  ASSIGN_OR_RETURN(std::vector<Column> columns,
                   ReadCsvHeader(request, reader, delimiter));
  if (HasNoHeader(request.spec)) {
    ASSIGN_OR_RETURN(reader, CsvReader::Open(path, delimiter));
  }
  return absl::WrapUnique(
      new CsvPart(files, std::move(columns), std::move(reader)));
}

absl::StatusOr<bool> CsvPart::Next(Record* record) {
  ASSIGN_OR_RETURN(const bool more, reader_.Next());
  if (!more) return false;
  record->place = reader_.line();
  record->bytes.clear();
  if (reader_.fields().size() != columns().size()) {
    record->bad = absl::InvalidArgumentError(absl::StrCat(
        "wanted ", columns().size(), " fields, as the first line has, found ",
        reader_.fields().size()));
    return true;
  }
  for (absl::string_view field : reader_.fields()) {
    field = absl::StripAsciiWhitespace(field);
    if (absl::StrContains(field, kFieldEnd)) {
      record->bad = absl::InvalidArgumentError("a field has a zero byte");
    }
    record->bytes.append(field.data(), field.size());
    record->bytes.push_back(kFieldEnd);
  }
  return true;
}

absl::Status ParseFields(absl::Span<const Column> columns, const Record& record,
                         absl::Span<const size_t> /*wanted*/, Row* into) {
  absl::string_view rest = record.bytes;
  for (size_t i = 0; i < columns.size(); ++i) {
    const size_t end = std::min(rest.find(kFieldEnd), rest.size());
    into->cells[i] = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return absl::OkStatus();
}

DataSetType MakeType() {
  DataSetType type;
  type.help =
      "rows of train*.csv and test*.csv (or .tsv): numbers, and a label";
  type.names.endings = {".csv", ".tsv"};
  type.open_in_order = &CsvPart::Open;
  type.parse = &ParseFields;
  type.place_name = "line";
  type.has_label_column = true;
  type.has_header = true;
  type.has_targets = true;
  type.class_texts = ClassTexts::kNamesOrNumbers;
  return type;
}

[[maybe_unused]] const bool kRegistered =
    DataSetRegistry::Register("csv", MakeType());

}  // namespace
}  // namespace muster
