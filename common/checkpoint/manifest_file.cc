#include "common/checkpoint/manifest_file.h"

#include <memory>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/checkpoint_layout.h"
#include "common/checkpoint/manifest.h"

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

}  // namespace muster
