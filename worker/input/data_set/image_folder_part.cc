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
#include "absl/strings/string_view.h"
#include "common/base/status_macros.h"
#include "worker/input/data_set/data_set_registry.h"
#include "worker/input/data_set/open_part.h"
#include "worker/input/file/file_bytes.h"
#include "worker/input/image/image_folder.h"

namespace muster {
namespace {

// Above any photograph; a file of this size is something else.
constexpr int64_t kMaxFileBytes = int64_t{1} << 30;

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

 private:
  ImageFolderPart(ImageFolder folder, std::vector<Column> columns)
      : Part(PathsOf(folder), std::move(columns)), folder_(std::move(folder)) {}

  const ImageFolder folder_;
};

// Images whose classes nobody asks for need no folders.
absl::StatusOr<ImageFolder> Scan(const DataSetRequest& request) {
  const std::string& dir = request.spec.dir();
  if (dir.empty()) {
    return absl::InvalidArgumentError(
        "opening a data set: input.dir must be the folder of the images, found "
        "nothing");
  }
  const std::string half = absl::StrCat(dir, "/", PartName(request.split));
  if (request.labels.kind == LabelKind::kNone) return ListImages(half);
  absl::StatusOr<ImageFolder> folder = ScanImageFolder(half);
  if (folder.ok()) return folder;
  return Annotate(
      folder.status(),
      absl::StrCat("opening a data set: wanted '", dir,
                   "' with the folders train and test, in each of which is a "
                   "folder of images for each class"));
}

absl::StatusOr<std::unique_ptr<Part>> ImageFolderPart::Open(
    const DataSetRequest& request, const PartFiles& /*files*/,
    absl::Span<const Column> /*known*/) {
  ASSIGN_OR_RETURN(ImageFolder folder, Scan(request));
  std::vector<Column> columns = {{"image", ColumnKind::kImage, std::nullopt}};
  if (request.labels.kind != LabelKind::kNone) {
    columns.push_back({"label", ColumnKind::kText});
  }
  return absl::WrapUnique(
      new ImageFolderPart(std::move(folder), std::move(columns)));
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
  ASSIGN_OR_RETURN(const FileBytes file,
                   FileBytes::Open(image.path, kMaxFileBytes));
  if (file.size() > kMaxFileBytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        "an image has at most ", kMaxFileBytes, " bytes, found ", file.size()));
  }
  RETURN_IF_ERROR(file.ReadAt(0, into->MakeBytes(file.size())));
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
