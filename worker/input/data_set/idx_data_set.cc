#include "worker/input/data_set/idx_data_set.h"

#include <sys/stat.h>

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"
#include "worker/input/data_set/data_set_registry.h"
#include "worker/input/data_set/example_layout.h"
#include "worker/input/data_set/idx_file.h"

namespace muster {
namespace {

constexpr char kAdvice[] =
    "install the Debian package dataset-fashion-mnist (it fills "
    "/usr/share/datasets/fashion-mnist), or set input.dir to the folder of "
    "the four MNIST files";

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

// One label for each of the images.
absl::StatusOr<std::vector<uint8_t>> ReadLabels(const std::string& path,
                                                const std::string& images_path,
                                                const IdxFile& images) {
  ASSIGN_OR_RETURN(IdxFile labels, ReadIdxFile(path, IdxKind::kLabels));
  if (images.shape[0] == labels.shape[0]) return std::move(labels.values);
  return absl::InvalidArgumentError(absl::StrCat(
      "opening a data set: '", images_path, "' has ", images.shape[0],
      " images, '", path, "' has ", labels.shape[0], " labels"));
}

absl::Status CheckShape(const std::string& images_path, const IdxFile& images,
                        const Shape& input_shape) {
  const std::vector<int64_t> image(images.shape.begin() + 1,
                                   images.shape.end());
  const int64_t elements =
      static_cast<int64_t>(images.values.size()) / images.shape[0];
  if (elements == input_shape.num_elements()) return absl::OkStatus();
  const std::string found = absl::StrJoin(image, ", ");
  const char* const first = image.size() == 2 || image.empty() ? "1" : "";
  return absl::InvalidArgumentError(
      absl::StrCat("opening a data set: model.input_shape is ",
                   input_shape.ToString(), ", the images of '", images_path,
                   "' are [", found, "]; set model.input_shape to [", first,
                   image.size() == 2 ? ", " : "", found, "]"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<DataSet>> IdxDataSet::Create(
    const std::string& dir, const Shape& input_shape, absl::string_view prefix,
    LabelKind labels) {
  ASSIGN_OR_RETURN(const std::string images_path,
                   FindFile(dir, absl::StrCat(prefix, "-images-idx3-ubyte")));
  std::string labels_path;
  if (labels != LabelKind::kNone) {
    ASSIGN_OR_RETURN(labels_path,
                     FindFile(dir, absl::StrCat(prefix, "-labels-idx1-ubyte")));
  }
  ASSIGN_OR_RETURN(IdxFile images, ReadIdxFile(images_path, IdxKind::kImages));
  std::vector<uint8_t> classes;
  if (labels != LabelKind::kNone) {
    ASSIGN_OR_RETURN(classes, ReadLabels(labels_path, images_path, images));
  }
  RETURN_IF_ERROR(CheckShape(images_path, images, input_shape));
  return std::unique_ptr<DataSet>(
      new IdxDataSet(input_shape, std::move(images.values), std::move(classes),
                     images_path, labels_path));
}

IdxDataSet::IdxDataSet(const Shape& example_shape, std::vector<uint8_t> images,
                       std::vector<uint8_t> labels, std::string images_path,
                       std::string labels_path)
    : example_shape_(example_shape),
      images_(std::move(images)),
      labels_(std::move(labels)),
      images_path_(std::move(images_path)),
      labels_path_(std::move(labels_path)),
      example_bytes_(example_shape.num_elements()),
      num_classes_(labels_.empty()
                       ? 0
                       : *std::max_element(labels_.begin(), labels_.end()) +
                             1) {}

std::string IdxDataSet::LargestLabelPlace() const {
  const auto largest = std::max_element(labels_.begin(), labels_.end());
  return absl::StrCat("row ", largest - labels_.begin(), " of '", labels_path_,
                      "'");
}

absl::Status IdxDataSet::Read(int64_t index, const ExampleMemory& into) const {
  const uint8_t* image = images_.data() + index * example_bytes_;
  ScaleBytes(absl::MakeConstSpan(image, example_bytes_), into.values);
  if (into.label != nullptr && !labels_.empty()) *into.label = labels_[index];
  return absl::OkStatus();
}

namespace {

[[maybe_unused]] const bool kRegistered = DataSetRegistry::Register(
    "idx", WholeType("the four MNIST files in input.dir, plain or .gz",
                     [](const DataSetRequest& request) {
                       return IdxDataSet::Create(
                           request.spec.dir(), request.example_shape,
                           request.split == Split::kTrain ? "train" : "t10k",
                           request.labels.kind);
                     }));

}  // namespace
}  // namespace muster
