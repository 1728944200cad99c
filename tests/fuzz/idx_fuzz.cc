// IDX files, plain and gzip.
#include "tests/fuzz/fuzz.h"
#include "worker/input/data_set/idx_file.h"

namespace muster {

void TryInput(absl::string_view input) {
  const InputFile file(input);
  for (const IdxKind kind : {IdxKind::kLabels, IdxKind::kImages}) {
    const auto idx = ReadIdxFile(file.path(), kind);
    if (!idx.ok()) continue;
    size_t values = 1;
    for (const int64_t size : idx->shape) values *= static_cast<size_t>(size);
    Want(values == idx->values.size(), "the values of the shape");
  }
}

}  // namespace muster
