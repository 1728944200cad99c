#include "common/checkpoint/checkpoint_reader.h"

#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"
#include "common/base/stopped_error.h"
#include "common/checkpoint/manifest_file.h"
#include "common/checkpoint/train_dir.h"

namespace muster {
namespace {

// The layout that the manifest promises.
absl::StatusOr<CheckpointLayout> PromisedLayout(
    const CheckpointManifest& manifest) {
  const std::vector<TensorDef> parameters(manifest.parameters().begin(),
                                          manifest.parameters().end());
  const std::vector<std::string> slots(manifest.slots().begin(),
                                       manifest.slots().end());
  absl::StatusOr<CheckpointLayout> layout = LayOutCheckpoint(parameters, slots);
  if (!layout.ok()) return absl::DataLossError(layout.status().message());
  const int tensors =
      static_cast<int>(layout->parameters.size() + layout->slots.size());
  if (manifest.files_size() != 2 || manifest.tensors_size() != tensors ||
      manifest.files(0).name() != kParametersFile ||
      manifest.files(1).name() != kSlotsFile) {
    return absl::DataLossError(
        absl::StrCat("the manifest lists ", manifest.files_size(),
                     " files with ", manifest.tensors_size(),
                     " tensors, its parameters and slots make 2 "
                     "files with ",
                     tensors));
  }
  return layout;
}

absl::Status CheckEntry(const SafetensorsEntry& wanted,
                        const SafetensorsEntry& found) {
  if (wanted.name == found.name && wanted.dtype == found.dtype &&
      wanted.shape == found.shape && wanted.begin == found.begin) {
    return absl::OkStatus();
  }
  return absl::DataLossError(absl::StrCat(
      "its header has tensor '", absl::CHexEscape(found.name), "' of shape ",
      found.shape.ToString(), " where the manifest has '", wanted.name,
      "' of shape ", wanted.shape.ToString()));
}

int64_t BytesOf(const CheckpointManifest& manifest) {
  int64_t bytes = 0;
  for (const CheckpointFile& file : manifest.files()) bytes += file.bytes();
  return bytes;
}

// Is the file what the manifest promises? `first_tensor` is the manifest's
// index of the file's first tensor.
absl::Status CheckFile(const CheckpointManifest& manifest,
                       const CheckpointFile& file, int first_tensor,
                       const std::vector<SafetensorsEntry>& wanted,
                       const SafetensorsReader& reader,
                       WorkProgress* progress) {
  if (reader.file_bytes() != file.bytes() ||
      reader.entries().size() != wanted.size()) {
    return absl::DataLossError(absl::StrCat(
        reader.file_bytes(), " bytes with ", reader.entries().size(),
        " tensors, the manifest has ", file.bytes(), " with ", wanted.size()));
  }
  for (size_t i = 0; i < wanted.size(); ++i) {
    RETURN_IF_ERROR(CheckEntry(wanted[i], reader.entries()[i]));
    const CheckpointTensor& tensor =
        manifest.tensors(first_tensor + static_cast<int>(i));
    ASSIGN_OR_RETURN(const uint32_t crc, reader.TensorCrc32c(wanted[i].name));
    if (tensor.name() != wanted[i].name || tensor.crc32c() != crc) {
      return absl::DataLossError(absl::StrCat(
          "tensor '", wanted[i].name, "' is damaged: its CRC does not fit"));
    }
    progress->Add(reader.entries()[i].end - reader.entries()[i].begin);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<SafetensorsReader>> OpenFile(
    FileSystem* file_system, const std::string& folder,
    const CheckpointManifest& manifest, int file, int first_tensor,
    const std::vector<SafetensorsEntry>& wanted, WorkProgress* progress) {
  const std::string path =
      absl::StrCat(folder, "/", manifest.files(file).name());
  ASSIGN_OR_RETURN(std::unique_ptr<SafetensorsReader> reader,
                   SafetensorsReader::Open(file_system, path));
  const absl::Status fits = CheckFile(manifest, manifest.files(file),
                                      first_tensor, wanted, *reader, progress);
  const std::string context = absl::StrCat("read '", path, "'");
  // A read that failed has said so.
  if (absl::StartsWith(fits.message(), context)) return fits;
  RETURN_IF_ERROR(Annotate(fits, context));
  return reader;
}

}  // namespace

CheckpointReader::CheckpointReader(
    std::string path, CheckpointManifest manifest, CheckpointLayout layout,
    std::unique_ptr<SafetensorsReader> parameters,
    std::unique_ptr<SafetensorsReader> slots)
    : path_(std::move(path)),
      manifest_(std::move(manifest)),
      layout_(std::move(layout)),
      parameters_(std::move(parameters)),
      slots_(std::move(slots)) {}

absl::StatusOr<std::unique_ptr<CheckpointReader>> CheckpointReader::Open(
    FileSystem* file_system, const std::string& path, WorkProgress* progress) {
  ASSIGN_OR_RETURN(CheckpointManifest manifest,
                   ReadManifestFile(file_system, path));
  absl::StatusOr<CheckpointLayout> layout = PromisedLayout(manifest);
  if (!layout.ok()) {
    return Annotate(layout.status(), absl::StrCat("read '", path, "'"));
  }
  WorkProgress silent;
  if (progress == nullptr) progress = &silent;
  progress->Begin(
      {absl::StrCat("check of ", path), BytesOf(manifest), "MB", 1'000'000});
  ASSIGN_OR_RETURN(std::unique_ptr<SafetensorsReader> parameters,
                   OpenFile(file_system, path, manifest, /*file=*/0,
                            /*first_tensor=*/0, layout->parameters, progress));
  ASSIGN_OR_RETURN(std::unique_ptr<SafetensorsReader> slots,
                   OpenFile(file_system, path, manifest, /*file=*/1,
                            static_cast<int>(layout->parameters.size()),
                            layout->slots, progress));
  return std::unique_ptr<CheckpointReader>(
      new CheckpointReader(path, std::move(manifest), *std::move(layout),
                           std::move(parameters), std::move(slots)));
}

absl::StatusOr<CheckpointReader::Newest> CheckpointReader::OpenNewest(
    FileSystem* file_system, const std::string& train_dir,
    WorkProgress* progress) {
  ASSIGN_OR_RETURN(const std::vector<int64_t> steps,
                   ListCheckpoints(file_system, train_dir));
  if (steps.empty()) {
    return absl::NotFoundError(
        absl::StrCat("there is no checkpoint in train_dir '", train_dir, "'"));
  }
  Newest newest;
  for (const int64_t step : steps) {
    const std::string path = absl::StrCat(train_dir, "/", CheckpointName(step));
    absl::StatusOr<std::unique_ptr<CheckpointReader>> reader =
        Open(file_system, path, progress);
    if (reader.ok()) {
      newest.reader = *std::move(reader);
      return newest;
    }
    if (absl::IsFailedPrecondition(reader.status()) ||
        IsStopped(reader.status())) {
      return reader.status();
    }
    newest.warnings.push_back(absl::StrCat("checkpoint '", path,
                                           "' is not usable, trying the one "
                                           "before it: ",
                                           reader.status().message()));
  }
  return absl::DataLossError(
      absl::StrCat("no checkpoint in train_dir '", train_dir,
                   "' is usable: ", absl::StrJoin(newest.warnings, "; ")));
}

absl::Status CheckpointReader::Read(absl::string_view parameter,
                                    absl::string_view slot, int64_t offset,
                                    int64_t length, void* dst) const {
  if (slot.empty()) return parameters_->Read(parameter, offset, length, dst);
  return slots_->Read(absl::StrCat(parameter, "/", slot), offset, length, dst);
}

}  // namespace muster
