#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "common/base/status_macros.h"
#include "worker/input/data_set/data_set_registry.h"
#include "worker/input/data_set/example_image.h"
#include "worker/input/data_set/find_part.h"
#include "worker/input/file/file_bytes.h"
#include "worker/input/image/image_folder.h"

namespace muster {
namespace {

// Above any photograph; a file of this size is something else.
constexpr int64_t kMaxFileBytes = int64_t{1} << 30;

// Images that are decoded as they are asked for; each class is a folder in
// input.dir's train or test.
class ImageFolderDataSet : public DataSet {
 public:
  static absl::StatusOr<std::unique_ptr<DataSet>> Create(
      const DataSetRequest& request);

  int64_t num_examples() const override {
    return static_cast<int64_t>(files_.size());
  }
  const Shape& example_shape() const override { return example_shape_; }
  int64_t num_classes() const override {
    return static_cast<int64_t>(classes_.size());
  }
  std::vector<std::string> ClassNames() const override { return classes_; }
  std::string RowName(int64_t index) const override {
    return files_[index].path;
  }
  std::string LargestLabelPlace() const override {
    return absl::StrCat("'", files_.back().path, "'");
  }
  std::vector<std::string> Files() const override {
    std::vector<std::string> paths;
    for (const ImageFile& file : files_) paths.push_back(file.path);
    return paths;
  }
  absl::Status Read(int64_t index, const ExampleMemory& into) const override {
    const ImageFile& file = files_[index];
    if (into.label != nullptr) *into.label = file.class_index;
    const absl::Status status = ReadImage(file.path, into.values);
    const std::string context = absl::StrCat("reading '", file.path, "'");
    // A file that cannot be opened has said so.
    return absl::StartsWith(status.message(), context)
               ? status
               : Annotate(status, context);
  }

 private:
  ImageFolderDataSet(const ExampleImage& image, const Shape& shape,
                     ImageFolder folder)
      : example_shape_(shape),
        image_(image),
        files_(std::move(folder.files)),
        classes_(std::move(folder.classes)) {}

  absl::Status ReadImage(const std::string& path, float* example) const;

  const Shape example_shape_;
  const ExampleImage image_;
  const std::vector<ImageFile> files_;
  const std::vector<std::string> classes_;
};

absl::Status ReadBytes(const std::string& path, std::vector<uint8_t>* bytes) {
  ASSIGN_OR_RETURN(const FileBytes file, FileBytes::Open(path, kMaxFileBytes));
  if (file.size() > kMaxFileBytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        "an image has at most ", kMaxFileBytes, " bytes, found ", file.size()));
  }
  bytes->resize(file.size());
  return file.ReadAt(0, absl::MakeSpan(*bytes));
}

absl::Status ImageFolderDataSet::ReadImage(const std::string& path,
                                           float* example) const {
  // A thread's own, so that nothing is allocated from row to row.
  thread_local std::vector<uint8_t> file;
  RETURN_IF_ERROR(ReadBytes(path, &file));
  return image_.Decode(file, example);
}

absl::StatusOr<ImageFolder> ScanPart(const InputSpec& spec, Split split) {
  if (spec.dir().empty()) {
    return absl::InvalidArgumentError(
        "opening a data set: input.dir must be the folder of the images, found "
        "nothing");
  }
  absl::StatusOr<ImageFolder> folder =
      ScanImageFolder(absl::StrCat(spec.dir(), "/", PartName(split)));
  if (folder.ok()) return folder;
  return Annotate(
      folder.status(),
      absl::StrCat("opening a data set: wanted '", spec.dir(),
                   "' with the folders train and test, in each of which is a "
                   "folder of images for each class"));
}

// Gives the files of `test` the training half's classes.
absl::Status AdoptClasses(const ImageFolder& train, ImageFolder* test) {
  for (ImageFile& file : test->files) {
    const std::string& name = test->classes[file.class_index];
    const auto found =
        std::lower_bound(train.classes.begin(), train.classes.end(), name);
    if (found == train.classes.end() || *found != name) {
      return absl::InvalidArgumentError(absl::StrCat(
          "opening a data set: '", file.path, "' is of the class '", name,
          "', which the training half does not have; it has ",
          absl::StrJoin(train.classes, ", ")));
    }
    file.class_index = static_cast<int>(found - train.classes.begin());
  }
  test->classes = train.classes;
  return absl::OkStatus();
}

// Images whose classes nobody asks for, with the names of the training half's.
absl::StatusOr<ImageFolder> ScanUnlabelled(const InputSpec& spec, Split split) {
  ASSIGN_OR_RETURN(ImageFolder folder,
                   ListImages(absl::StrCat(spec.dir(), "/", PartName(split))));
  const absl::StatusOr<ImageFolder> train = ScanPart(spec, Split::kTrain);
  folder.classes = train.ok() ? train->classes : std::vector<std::string>();
  return folder;
}

absl::StatusOr<ImageFolder> ScanLabelled(const InputSpec& spec, Split split) {
  ASSIGN_OR_RETURN(ImageFolder folder, ScanPart(spec, split));
  if (split == Split::kTrain) return folder;
  ASSIGN_OR_RETURN(const ImageFolder train, ScanPart(spec, Split::kTrain));
  RETURN_IF_ERROR(AdoptClasses(train, &folder));
  return folder;
}

absl::StatusOr<std::unique_ptr<DataSet>> ImageFolderDataSet::Create(
    const DataSetRequest& request) {
  const InputSpec& spec = request.spec;
  ASSIGN_OR_RETURN(
      const ExampleImage image,
      ExampleImage::Create(request.example_shape, !spec.shape().empty()));
  ASSIGN_OR_RETURN(ImageFolder folder, request.labels.kind == LabelKind::kNone
                                           ? ScanUnlabelled(spec, request.split)
                                           : ScanLabelled(spec, request.split));
  return std::unique_ptr<DataSet>(
      new ImageFolderDataSet(image, request.example_shape, std::move(folder)));
}

[[maybe_unused]] const bool kRegistered = DataSetRegistry::Register(
    "image_folder",
    WholeType("JPEG and PNG files in train/CLASS and test/CLASS",
              &ImageFolderDataSet::Create, /*has_label_column=*/false,
              /*has_feature_column=*/false, /*has_targets=*/false,
              /*decodes=*/true));

}  // namespace
}  // namespace muster
