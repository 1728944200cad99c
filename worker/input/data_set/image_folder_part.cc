#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/memory/memory.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "common/base/status_macros.h"
#include "worker/input/data_set/data_set_registry.h"
#include "worker/input/data_set/open_part.h"
#include "worker/input/file/file_bytes.h"
#include "worker/input/image/image_decoder.h"
#include "worker/input/image/image_folder.h"
#include "worker/input/map/map_chain.h"
#include "worker/input/map/row_spec.h"

namespace muster {
namespace {

// Above any photograph; a file of this size is something else.
constexpr int64_t kMaxFileBytes = int64_t{1} << 30;

// As many images show whether a folder has any in colour.
constexpr int64_t kLookedAt = 8;
// A small side for photographs, at which they can be told apart.
constexpr int64_t kPhotoSide = 64;

std::vector<std::string> PathsOf(const ImageFolder& folder) {
  std::vector<std::string> paths;
  for (const ImageFile& file : folder.files) paths.push_back(file.path);
  return paths;
}

// The images of a half, which are read as they are asked for; each class is a
// folder in input.dir's train or test.
class ImageFolderPart : public Part {
 public:
  static absl::StatusOr<std::unique_ptr<Part>> Open(
      const DataSetRequest& request, const PartFiles& files,
      absl::Span<const Column> known);

  std::optional<int64_t> num_rows() const override { return files().size(); }
  absl::Status Read(int64_t row, absl::Span<const size_t> wanted,
                    Row* into) const override;
  std::string Place(int64_t row) const override {
    return absl::StrCat("'", files()[row], "'");
  }
  std::string RowName(int64_t row) const override { return files()[row]; }
  std::vector<std::string> Remarks() const override { return remarks_; }

 private:
  ImageFolderPart(ImageFolder folder, std::vector<Column> columns,
                  std::vector<std::string> remarks)
      : Part(PathsOf(folder), std::move(columns)),
        folder_(std::move(folder)),
        remarks_(std::move(remarks)) {}

  const ImageFolder folder_;
  const std::vector<std::string> remarks_;
};

std::string HalfFolder(const DataSetRequest& request) {
  return absl::StrCat(request.spec.dir(), "/", PartName(request.split));
}

// Images whose classes nobody asks for need no folders.
absl::StatusOr<ImageFolder> Scan(const DataSetRequest& request) {
  const std::string& dir = request.spec.dir();
  if (dir.empty()) {
    return absl::InvalidArgumentError(
        "opening a data set: input.dir must be the folder of the images, found "
        "nothing");
  }
  const std::string half = HalfFolder(request);
  if (request.labels.kind == LabelKind::kNone) {
    return ListImages(half, request.progress.get());
  }
  absl::StatusOr<ImageFolder> folder =
      ScanImageFolder(half, request.progress.get());
  if (folder.ok()) return folder;
  return Annotate(
      folder.status(),
      absl::StrCat("opening a data set: wanted '", dir,
                   "' with the folders train and test, in each of which is a "
                   "folder of images for each class"));
}

// Reads a whole file into the row's bytes.
absl::Status ReadImage(const std::string& path, Row* into) {
  ASSIGN_OR_RETURN(const FileBytes file, FileBytes::Open(path, kMaxFileBytes));
  if (file.size() > kMaxFileBytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        "an image has at most ", kMaxFileBytes, " bytes, found ", file.size()));
  }
  return file.ReadAt(0, into->MakeBytes(file.size()));
}

// The header of the first image in colour of a few; absent: all are grey, or
// damaged.
std::optional<ImageHeader> FindColour(const std::vector<ImageFile>& files) {
  absl::StatusOr<ImageDecoder> decoder = ImageDecoder::Create({});
  if (!decoder.ok()) return std::nullopt;
  const auto size = static_cast<int64_t>(files.size());
  const int64_t looked_at = std::min(kLookedAt, size);
  Row row;
  for (int64_t i = 0; i < looked_at; ++i) {
    const std::string& path = files[i * size / looked_at].path;
    if (!ReadImage(path, &row).ok()) continue;
    const absl::StatusOr<ImageHeader> header = decoder->ReadHeader(
        absl::MakeConstSpan(reinterpret_cast<const uint8_t*>(row.bytes.data()),
                            row.bytes.size()));
    if (header.ok() && header->channels == 3) return *header;
  }
  return std::nullopt;
}

// The flags by which images are read in colour and of this size; "" if
// input.map makes nothing of such images.
std::string ColourFlags(const InputSpec& spec, int64_t rows, int64_t columns) {
  std::vector<MapStageSpec> stages;
  for (const MapSpec& stage : spec.map()) {
    stages.push_back({stage.type(), stage.attr()});
  }
  const absl::StatusOr<MapChain> chain =
      MapChain::Create(stages, {FLOAT32, Shape({3, rows, columns})});
  if (!chain.ok()) return "";
  const Shape& read = chain->output().shape;
  // A crop of a fixed size would see a part of a larger image.
  const bool is_cut = read.rank() == 3 && read.dim(1) < rows;
  if (is_cut && rows == kPhotoSide) return "";
  return absl::StrCat(
      "--set=input.shape=3,", rows, ",", columns,
      " --set=model.input_shape=", absl::StrJoin(read.dims(), ","));
}

// That images lose their colours in a new model, and how to keep them; "" if
// they do not.
std::string ColourRemark(const DataSetRequest& request,
                         const ImageFolder& folder) {
  const Shape& shape = request.example_shape;
  if (request.run != nullptr || request.split != Split::kTrain ||
      shape.rank() != 3 || shape.dim(0) != 1) {
    return "";
  }
  const std::optional<ImageHeader> colour = FindColour(folder.files);
  if (!colour.has_value()) return "";
  const int64_t rows = shape.dim(1);
  const int64_t columns = shape.dim(2);
  const bool is_photo =
      std::min(colour->width(), colour->height()) >= kPhotoSide &&
      std::max(rows, columns) < kPhotoSide;
  std::string flags;
  if (is_photo) flags = ColourFlags(request.spec, kPhotoSide, kPhotoSide);
  if (flags.empty()) flags = ColourFlags(request.spec, rows, columns);
  const bool is_scaled = colour->width() != columns || colour->height() != rows;
  return absl::StrCat(
      "images in colour become grey",
      is_scaled
          ? absl::StrCat(", and those of ", colour->width(), " x ",
                         colour->height(), " become ", columns, " x ", rows)
          : "",
      ", as the model reads ", shape.ToString(),
      flags.empty() ? "" : "; in colour: ", flags);
}

std::vector<std::string> RemarksOn(const DataSetRequest& request,
                                   const std::string& half,
                                   const ImageFolder& folder) {
  std::vector<std::string> remarks;
  if (folder.others.count() > 0) {
    remarks.push_back(
        absl::StrCat("'", half, "' has ", folder.others.ToString()));
  }
  std::string colour = ColourRemark(request, folder);
  if (!colour.empty()) remarks.push_back(std::move(colour));
  return remarks;
}

absl::StatusOr<std::unique_ptr<Part>> ImageFolderPart::Open(
    const DataSetRequest& request, const PartFiles& /*files*/,
    absl::Span<const Column> /*known*/) {
  ASSIGN_OR_RETURN(ImageFolder folder, Scan(request));
  std::vector<Column> columns = {{"image", ColumnKind::kImage, std::nullopt}};
  if (request.labels.kind != LabelKind::kNone) {
    columns.push_back({"label", ColumnKind::kText});
  }
  std::vector<std::string> remarks =
      RemarksOn(request, HalfFolder(request), folder);
  return absl::WrapUnique(new ImageFolderPart(
      std::move(folder), std::move(columns), std::move(remarks)));
}

absl::Status ImageFolderPart::Read(int64_t row, absl::Span<const size_t> wanted,
                                   Row* into) const {
  const ImageFile& image = folder_.files[row];
  if (columns().size() > 1) {
    into->cells[1] = absl::string_view(folder_.classes[image.class_index]);
  }
  if (std::find(wanted.begin(), wanted.end(), 0) == wanted.end()) {
    return absl::OkStatus();
  }
  RETURN_IF_ERROR(ReadImage(image.path, into));
  into->cells[0] = absl::string_view(into->bytes);
  return absl::OkStatus();
}

DataSetType MakeType() {
  DataSetType type;
  type.help = "JPEG and PNG files in train/CLASS and test/CLASS";
  type.names.is_test = [](absl::string_view entry) {
    return entry == PartName(Split::kTest);
  };
  type.open = &ImageFolderPart::Open;
  type.class_texts = ClassTexts::kNames;
  type.has_labels_apart = true;
  type.decodes = true;
  return type;
}

[[maybe_unused]] const bool kRegistered =
    DataSetRegistry::Register("image_folder", MakeType());

}  // namespace
}  // namespace muster
