#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "common/base/status_macros.h"
#include "worker/input/data_set/data_set_registry.h"
#include "worker/input/data_set/example_layout.h"
#include "worker/input/data_set/find_part.h"
#include "worker/input/file/file_bytes.h"
#include "worker/input/image/image_decoder.h"
#include "worker/input/image/image_folder.h"
#include "worker/input/map/map_chain.h"
#include "worker/input/map/row_spec.h"

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
  absl::Status Read(int64_t index, const ExampleMemory& into) const override {
    const ImageFile& file = files_[index];
    if (into.label != nullptr) *into.label = file.class_index;
    return Annotate(ReadImage(file.path, into.values),
                    absl::StrCat("reading '", file.path, "'"));
  }

 private:
  // A thread's own, for the data sets that it reads one after the other.
  struct Work {
    std::optional<ImageDecoder> decoder;
    // The options that the decoder was made with: channels, height, width.
    std::vector<int> made_for;
    std::vector<uint8_t> file;
    std::vector<uint8_t> resized;
  };

  ImageFolderDataSet(const Shape& shape, ImageFolder folder, bool scales)
      : example_shape_(shape),
        files_(std::move(folder.files)),
        classes_(std::move(folder.classes)),
        scales_(scales) {}

  absl::Status ReadImage(const std::string& path, float* example) const;
  absl::Status PrepareDecoder(Work* work) const;
  // The pixels in the size of the examples.
  absl::StatusOr<absl::Span<const uint8_t>> Fit(const DecodedImage& image,
                                                Work* work) const;

  const Shape example_shape_;
  const std::vector<ImageFile> files_;
  const std::vector<std::string> classes_;
  // Images of other sizes are scaled: input.shape says to which.
  const bool scales_;
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

absl::Status ImageFolderDataSet::PrepareDecoder(Work* work) const {
  ImageDecoder::Options options;
  options.channels = static_cast<int>(example_shape_.dim(0));
  if (scales_) {
    options.min_height = static_cast<int>(example_shape_.dim(1));
    options.min_width = static_cast<int>(example_shape_.dim(2));
  }
  const std::vector<int> wanted = {options.channels, options.min_height,
                                   options.min_width};
  if (work->decoder.has_value() && work->made_for == wanted) {
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(ImageDecoder decoder, ImageDecoder::Create(options));
  work->decoder.emplace(std::move(decoder));
  work->made_for = wanted;
  return absl::OkStatus();
}

absl::StatusOr<absl::Span<const uint8_t>> ImageFolderDataSet::Fit(
    const DecodedImage& image, Work* work) const {
  const int64_t height = example_shape_.dim(1);
  const int64_t width = example_shape_.dim(2);
  if (image.height == height && image.width == width) return image.pixels;
  if (!scales_) {
    return absl::InvalidArgumentError(absl::StrCat(
        "wanted an image as large as model.input_shape, ", width, " x ", height,
        ", found ", image.width, " x ", image.height,
        "; input.shape: [channels, height, width] scales all images to one "
        "size"));
  }
  MapStageSpec resize;
  resize.type = "resize";
  Attr* const size = resize.attrs.Add();
  size->set_name("size");
  size->mutable_list()->add_v(height);
  size->mutable_list()->add_v(width);
  const RowSpec found{
      UINT8, Shape({example_shape_.dim(0), image.height, image.width})};
  ASSIGN_OR_RETURN(const MapChain chain, MapChain::Create({resize}, found));
  work->resized.resize(chain.output().num_bytes());
  MapChain::Scratch scratch = chain.MakeScratch();
  RETURN_IF_ERROR(chain.Apply(
      {reinterpret_cast<const char*>(image.pixels.data()), image.pixels.size()},
      {reinterpret_cast<char*>(work->resized.data()), work->resized.size()},
      std::nullopt, &scratch));
  return absl::MakeConstSpan(work->resized);
}

absl::Status ImageFolderDataSet::ReadImage(const std::string& path,
                                           float* example) const {
  thread_local Work work;
  RETURN_IF_ERROR(PrepareDecoder(&work));
  RETURN_IF_ERROR(ReadBytes(path, &work.file));
  ASSIGN_OR_RETURN(const DecodedImage image, work.decoder->Decode(work.file));
  ASSIGN_OR_RETURN(const absl::Span<const uint8_t> pixels, Fit(image, &work));
  ScaleBytes(pixels, example);
  return absl::OkStatus();
}

absl::Status CheckShape(const Shape& shape) {
  if (shape.rank() == 3 && (shape.dim(0) == 1 || shape.dim(0) == 3) &&
      std::max(shape.dim(1), shape.dim(2)) <= kMaxPixels) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "opening a data set: images are [channels, height, width] with 1 or 3 "
      "channels, model.input_shape (or input.shape) is ",
      shape.ToString()));
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
  const Shape& shape = request.example_shape;
  RETURN_IF_ERROR(CheckShape(shape));
  ASSIGN_OR_RETURN(ImageFolder folder, request.labels.kind == LabelKind::kNone
                                           ? ScanUnlabelled(spec, request.split)
                                           : ScanLabelled(spec, request.split));
  std::unique_ptr<ImageFolderDataSet> data_set(new ImageFolderDataSet(
      shape, std::move(folder), /*scales=*/!spec.shape().empty()));
  // The first image shows whether the model can read them.
  std::vector<float> values(shape.num_elements());
  RETURN_IF_ERROR(data_set->Read(0, {values.data()}));
  return std::unique_ptr<DataSet>(std::move(data_set));
}

[[maybe_unused]] const bool kRegistered = DataSetRegistry::Register(
    "image_folder", {"JPEG and PNG files in train/CLASS and test/CLASS",
                     &ImageFolderDataSet::Create});

}  // namespace
}  // namespace muster
