// Text files of columns. The first byte has the options.
#include <vector>

#include "tests/fuzz/fuzz.h"
#include "worker/input/file/csv_table.h"

namespace muster {
namespace {

CsvOptions OptionsOf(uint8_t bits) {
  CsvOptions options;
  options.delimiter = (bits & 1) != 0 ? '\t' : ',';
  options.has_header = (bits & 2) == 0;
  options.keeps_bad_rows = (bits & 4) != 0;
  const bool named = options.has_header;
  options.labels = {{named ? "label" : "0", CsvType::kClass}};
  if ((bits & 8) != 0) options.labels[0].type = CsvType::kInteger;
  if ((bits & 16) != 0) options.labels[0].classes = {"cat", "dog"};
  if ((bits & 32) != 0) {
    options.columns = {{named ? "a" : "1", CsvType::kInteger},
                       {named ? "b" : "2", CsvType::kClass}};
  }
  return options;
}

}  // namespace

void TryInput(absl::string_view input) {
  const CsvOptions options = OptionsOf(TakeByte(&input));
  const InputFile file(input);
  // Twice: the headers of all files are compared.
  const auto table = CsvTable::Read({file.path(), file.path()}, options);
  if (!table.ok()) return;
  Want(table->num_rows() > 0 && table->num_rows() % 2 == 0, "rows of both");
  std::vector<float> row(table->columns().size());
  for (int64_t i = 0; i < table->num_rows(); ++i) {
    Want(table->Check(i).ok() || options.keeps_bad_rows, "no bad row");
    table->ReadRow(i, absl::MakeSpan(row));
    Want(table->Labels(i).size() == table->labels().size(), "its labels");
    Want(!table->Place(i).empty(), "its place");
  }
}

}  // namespace muster
