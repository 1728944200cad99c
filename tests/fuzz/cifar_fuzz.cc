// Files of CIFAR-10 and CIFAR-100, plain and gzip.
#include <cstdint>
#include <variant>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "tests/fuzz/fuzz.h"
#include "worker/input/data_set/data_set_registry.h"

namespace muster {

void TryInput(absl::string_view input) {
  const InputFile file(input);
  const auto type = DataSetRegistry::Find("cifar");
  const auto part = Wanted(type, "the type").open({}, {file.path()}, {});
  if (!part.ok()) return;
  const int64_t classes = (*part)->columns()[1].num_classes;
  Row row;
  row.cells.resize(2);
  for (int64_t i = 0; i < *(*part)->num_rows(); ++i) {
    Want((*part)->Read(i, {0, 1}, &row).ok(), "a row, as when it was opened");
    const auto label = std::get<absl::Span<const int64_t>>(row.cells[1]);
    Want(label[0] >= 0 && label[0] < classes, "a label in range");
    Want(std::get<absl::string_view>(row.cells[0]).size() == 3072, "pixels");
  }
}

}  // namespace muster
