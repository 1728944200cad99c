#include <sys/stat.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/memory/memory.h"
#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
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

// The path of `name` in `dir`, as it is or with ".gz"; "": there is none.
std::string FindFile(const std::string& dir, absl::string_view name) {
  const std::string path = absl::StrCat(dir, "/", name);
  if (Exists(path)) return path;
  return Exists(path + ".gz") ? path + ".gz" : "";
}

absl::Status NotFound(const std::string& dir, absl::string_view name) {
  const std::string path = absl::StrCat(dir, "/", name);
  return absl::NotFoundError(absl::StrCat("opening a data set: wanted '", path,
                                          "' or '", path,
                                          ".gz', found neither; ", kAdvice));
}

// The names in `dir`, without ".gz", that end with "-" and a name of `endings`.
std::set<std::string> FindNames(const std::string& dir,
                                const std::vector<std::string>& endings) {
  namespace fs = std::filesystem;
  std::set<std::string> names;
  std::error_code error;
  fs::directory_iterator entry(dir, error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    std::string file = entry->path().filename().string();
    absl::string_view name = file;
    absl::ConsumeSuffix(&name, ".gz");
    for (const std::string& ending : endings) {
      if (absl::EndsWith(name, absl::StrCat("-", ending))) {
        names.emplace(name);
      }
    }
  }
  return names;
}

// The name of the images of a half, without ".gz": MNIST's, the same with a dot
// ("train-images.idx3-ubyte"), or as EMNIST has it, with the set before it and
// "test" ("emnist-letters-test-images-idx3-ubyte").
absl::StatusOr<std::string> FindImages(const std::string& dir, Split split) {
  if (dir.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("input.dir: wanted the folder of the IDX files, found "
                     "nothing; ",
                     kAdvice));
  }
  std::vector<std::string> names;
  for (const char* const half : {split == Split::kTrain ? "train" : "t10k",
                                 split == Split::kTrain ? "train" : "test"}) {
    names.push_back(absl::StrCat(half, "-images-idx3-ubyte"));
    names.push_back(absl::StrCat(half, "-images.idx3-ubyte"));
  }
  for (const std::string& name : names) {
    if (!FindFile(dir, name).empty()) return name;
  }
  const std::set<std::string> found = FindNames(dir, names);
  if (found.empty()) return NotFound(dir, names[0]);
  if (found.size() == 1) return *found.begin();
  return absl::InvalidArgumentError(
      absl::StrCat("opening a data set: wanted one set in '", dir, "', found ",
                   absl::StrJoin(found, ", "),
                   ": make a folder with links to the four files of the one"));
}

absl::StatusOr<std::unique_ptr<Part>> IdxPart::Open(
    const DataSetRequest& request, const PartFiles& files,
    absl::Span<const Column> /*known*/) {
  const bool labelled = request.labels.kind != LabelKind::kNone;
  const std::string& dir = files[0];
  ASSIGN_OR_RETURN(const std::string name, FindImages(dir, request.split));
  PartFiles paths = {FindFile(dir, name)};
  if (labelled) {
    const std::string labels = absl::StrReplaceAll(
        name, {{"-images", "-labels"}, {"idx3-ubyte", "idx1-ubyte"}});
    paths.push_back(FindFile(dir, labels));
    if (paths[1].empty()) return NotFound(dir, labels);
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
  type.help = "the four files of MNIST or EMNIST in input.dir, plain or .gz";
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
