// Text files of columns. The first byte has the options.
#include <cstdint>

#include "absl/strings/string_view.h"
#include "tests/fuzz/fuzz.h"
#include "worker/input/data_set/data_set_registry.h"
#include "worker/input/data_set/example_columns.h"
#include "worker/input/data_set/table_part.h"

namespace muster {
namespace {

DataSetRequest RequestOf(uint8_t bits) {
  DataSetRequest request;
  request.example_shape = (bits & 1) != 0 ? Shape({1}) : Shape({2});
  if ((bits & 2) != 0) request.spec.set_label_column("a");
  if ((bits & 4) != 0) request.spec.set_on_bad_record(SKIP);
  if ((bits & 8) != 0) request.labels = {LabelKind::kTargets, 1};
  if ((bits & 16) != 0) request.labels = {LabelKind::kNone};
  if ((bits & 32) != 0) request.spec.set_header((bits & 64) != 0);
  return request;
}

}  // namespace

void TryInput(absl::string_view input) {
  const DataSetRequest request = RequestOf(TakeByte(&input));
  const InputFile file(input);
  const auto type = DataSetRegistry::Find("csv");
  const auto part =
      Wanted(type, "the type").open_in_order(request, {file.path()}, {});
  if (!part.ok()) return;
  const auto columns = ExampleColumns::Create(request, **part);
  if (!columns.ok()) return;
  const auto table = TablePart::Read(*type, request, *columns, **part);
  if (!table.ok()) return;
  Row row;
  row.cells.resize((*table)->columns().size());
  for (int64_t i = 0; i < *(*table)->num_rows(); ++i) {
    Want((*table)->Read(i, {}, &row).ok() ||
             request.spec.on_bad_record() == SKIP,
         "no bad row");
    Want(!(*table)->Place(i).empty(), "its place");
  }
}

}  // namespace muster
