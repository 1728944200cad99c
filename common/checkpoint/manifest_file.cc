#include "common/checkpoint/manifest_file.h"

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/checkpoint_layout.h"
#include "common/checkpoint/manifest.h"
#include "common/checkpoint/train_dir.h"

namespace muster {
namespace {

// A million tensors with long names fit; a wrong file does not fill memory.
constexpr int64_t kMaxManifestBytes = int64_t{1} << 30;

}  // namespace

absl::StatusOr<CheckpointManifest> ReadManifestFile(FileSystem* file_system,
                                                    const std::string& folder) {
  const std::string path = absl::StrCat(folder, "/", kManifestFile);
  ASSIGN_OR_RETURN(const std::unique_ptr<ReadableFile> file,
                   file_system->OpenFile(path));
  if (file->size_bytes() > kMaxManifestBytes) {
    return absl::DataLossError(absl::StrCat(
        "'", path, "' has ", file->size_bytes(), " bytes, too many for it"));
  }
  std::string text(static_cast<size_t>(file->size_bytes()), '\0');
  RETURN_IF_ERROR(file->ReadAt(0, file->size_bytes(), text.data()));
  absl::StatusOr<CheckpointManifest> manifest = ParseManifest(text);
  if (manifest.ok()) return manifest;
  return Annotate(manifest.status(), absl::StrCat("read '", path, "'"));
}

absl::StatusOr<std::optional<CheckpointManifest>> FindNewestManifest(
    FileSystem* file_system, const std::string& train_dir) {
  ASSIGN_OR_RETURN(const std::vector<int64_t> newest_first,
                   ListCheckpoints(file_system, train_dir));
  std::optional<CheckpointManifest> newest;
  for (const int64_t step : newest_first) {
    absl::StatusOr<CheckpointManifest> manifest = ReadManifestFile(
        file_system, absl::StrCat(train_dir, "/", CheckpointName(step)));
    if (absl::IsFailedPrecondition(manifest.status())) return manifest.status();
    if (!manifest.ok()) continue;
    if (newest.has_value() &&
        newest->model_epoch() >= manifest->model_epoch()) {
      continue;
    }
    newest = *std::move(manifest);
  }
  return newest;
}

}  // namespace muster
