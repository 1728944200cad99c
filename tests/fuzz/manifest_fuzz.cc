// The manifest of a checkpoint: as it is, and with the CRCs of its contents.
#include <string>
#include <vector>

#include "common/checkpoint/manifest.h"
#include "common/config/text_format.h"
#include "tests/fuzz/fuzz.h"

namespace muster {
namespace {

void TryManifest(const CheckpointManifest& manifest, int version) {
  const auto text = FormatManifest(manifest, version);
  const auto again = ParseManifest(Wanted(text, "the text of a manifest"));
  const auto text_again =
      FormatManifest(Wanted(again, "a manifest that was printed"), version);
  Want(Wanted(text_again, "its text") == *text, "the same manifest");
  const std::vector<TensorDef> parameters(manifest.parameters().begin(),
                                          manifest.parameters().end());
  CheckCompatible(*again, parameters, manifest.optimizer()).IgnoreError();
}

}  // namespace

void TryInput(absl::string_view input) {
  const auto manifest = ParseManifest(input);
  if (manifest.ok()) TryManifest(*manifest, manifest->format_version());
  CheckpointManifest contents;
  if (!ParseTextProto(input, "input", &contents).ok()) return;
  for (int version = 1; version <= kCheckpointFormatVersion; ++version) {
    TryManifest(contents, version);
  }
}

}  // namespace muster
