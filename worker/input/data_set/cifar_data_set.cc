#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "worker/input/data_set/data_set_registry.h"
#include "worker/input/data_set/example_layout.h"
#include "worker/input/data_set/file_data_set.h"
#include "worker/input/data_set/find_part.h"
#include "worker/input/file/cifar_file.h"

namespace muster {
namespace {

// The files of CIFAR-10 or CIFAR-100, whose examples are read as they are asked
// for.
class CifarDataSet : public FileDataSet {
 public:
  static absl::StatusOr<std::unique_ptr<DataSet>> Create(
      const DataSetRequest& request);

  // All classes that there can be: a small test half may lack some.
  int64_t num_classes() const override { return files_[0].num_classes(); }

  absl::Status Read(int64_t index, const ExampleMemory& into) const override {
    const FileRows::Place place = labels().Find(index);
    uint8_t pixels[CifarFile::kPixelBytes];
    RETURN_IF_ERROR(
        files_[place.file]
            .Read(place.row, PixelOrder::kChannelsFirst, absl::MakeSpan(pixels))
            .status());
    ScaleBytes(pixels, into.values);
    labels().Write(index, into);
    return absl::OkStatus();
  }

 private:
  CifarDataSet(const Shape& example_shape, FileLabels labels,
               std::vector<CifarFile> files)
      : FileDataSet(example_shape, std::move(labels)),
        files_(std::move(files)) {}

  const std::vector<CifarFile> files_;
};

// CIFAR-100 only if the rows are not those of CIFAR-10.
absl::StatusOr<CifarFile> OpenCifar(const std::string& path) {
  absl::StatusOr<CifarFile> file = CifarFile::Open(path, CifarKind::kCifar10);
  if (file.ok() || !absl::IsInvalidArgument(file.status())) return file;
  absl::StatusOr<CifarFile> other = CifarFile::Open(path, CifarKind::kCifar100);
  return other.ok() ? std::move(other) : std::move(file);
}

absl::StatusOr<std::unique_ptr<DataSet>> CifarDataSet::Create(
    const DataSetRequest& request) {
  RETURN_IF_ERROR(
      FitExample({CifarFile::kChannels, CifarFile::kSide, CifarFile::kSide},
                 request.example_shape, "CIFAR")
          .status());
  ASSIGN_OR_RETURN(
      const std::vector<std::string> paths,
      FindPart(request.spec.dir(), request.split, {{".bin"}, {"data_batch"}}));
  std::vector<CifarFile> files;
  FileLabels labels;
  for (const std::string& path : paths) {
    ASSIGN_OR_RETURN(CifarFile file, OpenCifar(path));
    if (!files.empty() && file.num_classes() != files[0].num_classes()) {
      return absl::InvalidArgumentError(
          absl::StrCat("opening a data set: '", path, "' is CIFAR-",
                       file.num_classes(), ", '", paths[0], "' is CIFAR-",
                       files[0].num_classes(), "; keep them in two folders"));
    }
    std::vector<int32_t> of_file(file.num_rows());
    uint8_t pixels[CifarFile::kPixelBytes];
    for (size_t i = 0; i < of_file.size(); ++i) {
      ASSIGN_OR_RETURN(of_file[i], file.Read(static_cast<int64_t>(i),
                                             PixelOrder::kChannelsFirst,
                                             absl::MakeSpan(pixels)));
    }
    RETURN_IF_ERROR(labels.Add(path, of_file));
    files.push_back(std::move(file));
  }
  return std::unique_ptr<DataSet>(new CifarDataSet(
      request.example_shape, std::move(labels), std::move(files)));
}

[[maybe_unused]] const bool kRegistered = DataSetRegistry::Register(
    "cifar", {"the binary files of CIFAR-10 or CIFAR-100 in input.dir",
              &CifarDataSet::Create});

}  // namespace
}  // namespace muster
