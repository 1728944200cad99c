#include "worker/checkpoint/run_schema.h"

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/read_file.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/manifest_file.h"
#include "common/checkpoint/train_dir.h"
#include "worker/checkpoint/schema_text.h"
#include "worker/client/call_status.h"
#include "worker/input/data_set/data_schema.h"

namespace muster {
namespace {

// A million classes with long names fit.
constexpr int64_t kMaxSchemaBytes = int64_t{1} << 28;

// Nullopt if there is none.
absl::StatusOr<std::optional<DataSchema>> ReadSchemaFile(
    const std::string& train_dir) {
  const std::string path = SchemaPath(train_dir);
  const absl::StatusOr<std::string> text = ReadFile(path, kMaxSchemaBytes);
  if (absl::IsNotFound(text.status())) return std::nullopt;
  RETURN_IF_ERROR(OfFile(text.status()));
  absl::StatusOr<DataSchema> schema = ParseSchema(*text);
  if (schema.ok()) return *std::move(schema);
  return OfFile(Annotate(
      schema.status(),
      absl::StrCat("read '", path,
                   "' (put it back as it was, or move it away: checkpoints "
                   "have their own)")));
}

// The newest that can be read; none if one before it is of a newer format.
std::optional<CheckpointManifest> NewestManifest(
    FileSystem* file_system, const std::string& train_dir,
    const std::vector<int64_t>& steps) {
  for (const int64_t step : steps) {
    absl::StatusOr<CheckpointManifest> manifest = ReadManifestFile(
        file_system, absl::StrCat(train_dir, "/", CheckpointName(step)));
    if (manifest.ok()) return *std::move(manifest);
    if (absl::IsFailedPrecondition(manifest.status())) break;
  }
  return std::nullopt;
}

}  // namespace

absl::StatusOr<RunSchema> ReadRunSchema(FileSystem* file_system,
                                        const std::string& train_dir) {
  RunSchema run;
  if (train_dir.empty()) return run;
  const absl::StatusOr<std::vector<int64_t>> steps =
      ListCheckpoints(file_system, train_dir);
  if (!steps.ok()) return run;
  run.has_checkpoint = !steps->empty();
  ASSIGN_OR_RETURN(std::optional<DataSchema> schema, ReadSchemaFile(train_dir));
  std::optional<CheckpointManifest> newest =
      NewestManifest(file_system, train_dir, *steps);
  if (newest.has_value() && newest->has_schema()) {
    schema = std::move(*newest->mutable_schema());
  }
  if (schema.has_value() && schema->format() == kProgramFormat) {
    run.note = absl::StrCat("a program has trained the run of ", train_dir,
                            " and does not say what its data were: they are "
                            "not compared, columns and classes are worked out "
                            "anew");
  } else if (schema.has_value()) {
    run.schema = std::make_shared<const DataSchema>(*std::move(schema));
  } else if (newest.has_value()) {
    run.note = absl::StrCat(
        "the checkpoints of ", train_dir, " are of format ",
        newest->format_version(),
        ", which does not say what their data were: columns and classes are "
        "worked out anew");
  }
  return run;
}

}  // namespace muster
