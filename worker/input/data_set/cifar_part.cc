#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/memory/memory.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "worker/input/data_set/data_set_registry.h"
#include "worker/input/file/file_bytes.h"

namespace muster {
namespace {

constexpr int64_t kPixelBytes = 3 * 32 * 32;

// A binary file of CIFAR-10 or CIFAR-100: rows of 1 byte (the label), or 2 (a
// coarse label, which is passed over, and the label), and of 3 x 32 x 32 bytes,
// all of red, then green, then blue. Of a plain file only what is asked for is
// read; a gzip file is in memory.
class CifarPart : public Part {
 public:
  static absl::StatusOr<std::unique_ptr<Part>> Open(
      const DataSetRequest& request, const PartFiles& files,
      absl::Span<const Column> known);

  std::optional<int64_t> num_rows() const override {
    return bytes_.size() / row_bytes();
  }
  absl::Status Read(int64_t row, absl::Span<const size_t> wanted,
                    Row* into) const override;

 private:
  CifarPart(const PartFiles& files, FileBytes bytes, int64_t label_bytes)
      : Part(files, {{"image",
                      ColumnKind::kBytes,
                      {{3, 32, 32}},
                      /*channels_first=*/true},
                     {"label",
                      ColumnKind::kInteger,
                      {{}},
                      /*channels_first=*/false,
                      label_bytes == 1 ? 10 : 100}}),
        bytes_(std::move(bytes)),
        label_bytes_(label_bytes) {}

  int64_t row_bytes() const { return label_bytes_ + kPixelBytes; }

  const FileBytes bytes_;
  const int64_t label_bytes_;
};

absl::StatusOr<std::unique_ptr<Part>> CifarPart::Open(
    const DataSetRequest& /*request*/, const PartFiles& files,
    absl::Span<const Column> /*known*/) {
  ASSIGN_OR_RETURN(FileBytes bytes, FileBytes::Open(files[0]));
  const int64_t size = bytes.size();
  const int64_t row_bytes = 1 + kPixelBytes;
  const bool is_cifar10 = size > 0 && size % row_bytes == 0;
  if (!is_cifar10 && (size == 0 || size % (row_bytes + 1) != 0)) {
    return absl::InvalidArgumentError(
        absl::StrCat("reading '", files[0], "': wanted rows of ", row_bytes,
                     " bytes (CIFAR-10) or ", row_bytes + 1,
                     " (CIFAR-100), found ", size, " bytes: ", size / row_bytes,
                     " rows and ", size % row_bytes, " bytes"));
  }
  auto part = absl::WrapUnique(
      new CifarPart(files, std::move(bytes), is_cifar10 ? 1 : 2));
  Row row;
  row.cells.resize(part->columns().size());
  for (int64_t i = 0; i < *part->num_rows(); ++i) {
    const absl::Status status = part->Read(i, {}, &row);
    if (!status.ok()) {
      return Annotate(status, absl::StrCat("reading ", part->Place(i)));
    }
  }
  return part;
}

absl::Status CifarPart::Read(int64_t row, absl::Span<const size_t> /*wanted*/,
                             Row* into) const {
  RETURN_IF_ERROR(
      bytes_.ReadAt(row * row_bytes(), into->MakeBytes(row_bytes())));
  const int64_t label = static_cast<uint8_t>(into->bytes[label_bytes_ - 1]);
  const int64_t classes = columns()[1].num_classes;
  if (label >= classes) {
    return absl::InvalidArgumentError(absl::StrCat(
        "wanted a label from 0 to ", classes - 1, ", found ", label));
  }
  into->cells[0] = absl::string_view(into->bytes).substr(label_bytes_);
  into->cells[1] = into->MakeInteger(label);
  return absl::OkStatus();
}

DataSetType MakeType() {
  DataSetType type;
  type.help = "the binary files of CIFAR-10 or CIFAR-100 in input.dir";
  type.names = {{".bin"}, /*also_train=*/{"data_batch"}};
  type.open = &CifarPart::Open;
  return type;
}

[[maybe_unused]] const bool kRegistered =
    DataSetRegistry::Register("cifar", MakeType());

}  // namespace
}  // namespace muster
