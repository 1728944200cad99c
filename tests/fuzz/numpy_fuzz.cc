// Arrays of NumPy: npy files, and npz files, which are zip files of them.
#include <algorithm>
#include <string>
#include <vector>

#include "tests/fuzz/fuzz.h"
#include "worker/input/file/npy_file.h"
#include "worker/input/file/npz_member.h"

namespace muster {
namespace {

constexpr size_t kMostMembers = 8;

template <typename T>
void ReadEachRow(const NpyFile& array) {
  const int64_t rows = std::min<int64_t>(array.num_rows(), 64);
  std::vector<T> row(array.row_values());
  for (int64_t i = 0; i < rows; ++i) {
    if (!array.ReadRows(i, 1, absl::MakeSpan(row)).ok()) return;
  }
}

void TryArray(const absl::StatusOr<NpyFile>& array) {
  if (!array.ok()) return;
  ReadEachRow<float>(*array);
  ReadEachRow<int64_t>(*array);
}

}  // namespace

void TryInput(absl::string_view input) {
  const InputFile file(input);
  TryArray(NpyFile::Open(file.path()));
  auto names = ListNpz(file.path());
  if (!names.ok()) return;
  names->resize(std::min(names->size(), kMostMembers));
  for (const std::string& name : *names) {
    TryArray(OpenNpzMember(file.path(), name));
  }
}

}  // namespace muster
