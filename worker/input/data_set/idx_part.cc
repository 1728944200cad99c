#include <sys/stat.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/memory/memory.h"
#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/base/status_macros.h"
#include "worker/input/data_set/data_set_registry.h"
#include "worker/input/data_set/idx_file.h"

namespace muster {
namespace {

constexpr char kAdvice[] =
    "install the Debian package dataset-fashion-mnist (it fills "
    "/usr/share/datasets/fashion-mnist), or set input.dir to the folder of "
    "the four MNIST files";

// One half of MNIST or of a set distributed in its form, in memory.
class IdxPart : public Part {
 public:
  static absl::StatusOr<std::unique_ptr<Part>> Open(
      const DataSetRequest& request, const PartFiles& files,
      absl::Span<const Column> known);

  std::optional<int64_t> num_rows() const override {
    return images_.size() / image_bytes_;
  }
  absl::Status Read(int64_t row, absl::Span<const size_t> /*wanted*/,
                    Row* into) const override {
    into->cells[0] = absl::string_view(
        reinterpret_cast<const char*>(images_.data()) + row * image_bytes_,
        image_bytes_);
    if (!labels_.empty()) into->cells[1] = into->MakeInteger(labels_[row]);
    return absl::OkStatus();
  }

 private:
  IdxPart(PartFiles files, std::vector<Column> columns, IdxFile images,
          std::vector<uint8_t> labels)
      : Part(std::move(files), std::move(columns)),
        images_(std::move(images.values)),
        labels_(std::move(labels)),
        image_bytes_(images_.size() / images.shape[0]) {}

  // [num_rows(), image_bytes_] and [num_rows()], or nothing.
  const std::vector<uint8_t> images_;
  const std::vector<uint8_t> labels_;
  const size_t image_bytes_;
};

bool Exists(const std::string& path) {
  struct stat status;
  return stat(path.c_str(), &status) == 0;
}

// The path of `name` in `dir`, as it is or with ".gz".
absl::StatusOr<std::string> FindFile(const std::string& dir,
                                     const std::string& name) {
  if (dir.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("input.dir: wanted the folder of the IDX files, found "
                     "nothing; ",
                     kAdvice));
  }
  const std::string path = absl::StrCat(dir, "/", name);
  if (Exists(path)) return path;
  if (Exists(path + ".gz")) return path + ".gz";
  return absl::NotFoundError(absl::StrCat("opening a data set: wanted '", path,
                                          "' or '", path,
                                          ".gz', found neither; ", kAdvice));
}

absl::StatusOr<std::unique_ptr<Part>> IdxPart::Open(
    const DataSetRequest& request, const PartFiles& files,
    absl::Span<const Column> /*known*/) {
  const bool labelled = request.labels.kind != LabelKind::kNone;
  const char* const half = request.split == Split::kTrain ? "train" : "t10k";
  PartFiles paths(labelled ? 2 : 1);
  ASSIGN_OR_RETURN(
      paths[0], FindFile(files[0], absl::StrCat(half, "-images-idx3-ubyte")));
  if (labelled) {
    ASSIGN_OR_RETURN(
        paths[1], FindFile(files[0], absl::StrCat(half, "-labels-idx1-ubyte")));
  }
  ASSIGN_OR_RETURN(IdxFile images, ReadIdxFile(paths[0], IdxKind::kImages));
  std::vector<Column> columns = {
      {"image",
       ColumnKind::kBytes,
       {{images.shape.begin() + 1, images.shape.end()}},
       /*channels_first=*/true}};
  std::vector<uint8_t> labels;
  if (labelled) {
    ASSIGN_OR_RETURN(IdxFile file, ReadIdxFile(paths[1], IdxKind::kLabels));
    if (images.shape[0] != file.shape[0]) {
      return absl::InvalidArgumentError(absl::StrCat(
          "opening a data set: '", paths[0], "' has ", images.shape[0],
          " images, '", paths[1], "' has ", file.shape[0], " labels"));
    }
    columns.push_back({"label", ColumnKind::kInteger});
    labels = std::move(file.values);
  }
  return absl::WrapUnique(new IdxPart(std::move(paths), std::move(columns),
                                      std::move(images), std::move(labels)));
}

DataSetType MakeType() {
  DataSetType type;
  type.help = "the four MNIST files in input.dir, plain or .gz";
  type.names.is_test = [](absl::string_view entry) {
    return absl::StrContains(entry, "ubyte") &&
           (absl::StrContains(entry, "t10k") ||
            absl::StrContains(entry, "test"));
  };
  type.open = &IdxPart::Open;
  return type;
}

[[maybe_unused]] const bool kRegistered =
    DataSetRegistry::Register("idx", MakeType());

}  // namespace
}  // namespace muster
