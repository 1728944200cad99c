#include "worker/checkpoint/model_loader.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/manifest.h"
#include "common/checkpoint/manifest_file.h"
#include "common/checkpoint/train_dir.h"
#include "worker/checkpoint/chief_tables.h"
#include "worker/checkpoint/finished_run.h"
#include "worker/checkpoint/table_transfer.h"
#include "worker/client/call_status.h"
#include "worker/input/data_set/data_files.h"

namespace muster {

ModelLoader::ModelLoader(Options options) : options_(std::move(options)) {}

LoadEvent ModelLoader::Load(const LoadModel& epoch) {
  if (options_.watch == nullptr) return LoadNow(epoch);
  return options_.watch->WatchRead("load of the model",
                                   [&] { return LoadNow(epoch); });
}

LoadEvent ModelLoader::LoadNow(const LoadModel& epoch) {
  settled_ = true;
  options_.client->SetEpoch(epoch.model_epoch, epoch.ps_incarnations);
  if (options_.train_dir.empty()) return Initialize();
  const absl::StatusOr<std::vector<int64_t>> steps =
      ListCheckpoints(options_.file_system, options_.train_dir);
  // A folder that is gone is no new training.
  if (!steps.ok()) return LoadEvent{steps.status(), true};
  if (steps->empty()) return Initialize();
  absl::StatusOr<CheckpointReader::Newest> newest =
      CheckpointReader::OpenNewest(options_.file_system, options_.train_dir);
  if (!newest.ok()) return LoadEvent{newest.status(), true};
  for (const std::string& warning : newest->warnings) {
    options_.reporter.Error(warning);
  }
  const CheckpointReader& reader = *newest->reader;
  const absl::Status compatible = CheckCompatibleModel(reader.manifest());
  const std::string what = absl::StrCat("restore ", reader.path());
  if (!compatible.ok()) return LoadEvent{Annotate(compatible, what), true};
  absl::StatusOr<RestoredRows> rows =
      RestoreRows(reader.manifest(), options_.tasks, options_.rows);
  if (!rows.ok()) return LoadEvent{Annotate(rows.status(), what), true};
  absl::StatusOr<LoadedModel> restored = Restore(reader, *std::move(rows));
  const bool unusable = IsOfFile(restored.status());
  return LoadEvent{std::move(restored), unusable};
}

std::string ModelLoader::GivenWeights() const {
  if (options_.weights != nullptr) {
    return absl::StrCat("--init_from=", options_.weights->path());
  }
  const std::optional<std::string>& space = options_.read_from.space;
  return space.has_value() ? absl::StrCat("--read_from=", *space) : "";
}

std::optional<absl::Duration> ModelLoader::Enter() {
  const std::string given = GivenWeights();
  if (!given.empty() && !settled_) {
    options_.reporter.Info(absl::StrCat(
        given,
        " is not used: the ps tasks hold a model, and its training "
        "goes on"));
  }
  settled_ = true;
  return std::exchange(trained_, std::nullopt);
}

int64_t ModelLoader::SavedEpoch() {
  int64_t epoch = 0;
  if (options_.train_dir.empty()) return epoch;
  const absl::StatusOr<std::vector<int64_t>> steps =
      ListCheckpoints(options_.file_system, options_.train_dir);
  if (!steps.ok()) return epoch;  // Load will say why
  for (const int64_t step : *steps) {
    const absl::StatusOr<CheckpointManifest> manifest = ReadManifestFile(
        options_.file_system,
        absl::StrCat(options_.train_dir, "/", CheckpointName(step)));
    if (manifest.ok()) epoch = std::max(epoch, manifest->model_epoch());
  }
  return epoch;
}

absl::Status ModelLoader::CheckCompatibleModel(
    const CheckpointManifest& manifest) const {
  const PlacedModel& placed = *options_.placed;
  RETURN_IF_ERROR(CheckCompatible(manifest, placed.tensors,
                                  placed.definition.optimizer, placed.tables));
  return CheckTableSlots(manifest, placed.tables);
}

absl::StatusOr<LoadedModel> ModelLoader::Restore(const CheckpointReader& reader,
                                                 RestoredRows rows) {
  ChiefClient& chief = options_.client->chief();
  ModelDefinition definition = options_.placed->definition;
  definition.updates = reader.manifest().global_step();
  RETURN_IF_ERROR(chief.Define(definition).status());
  for (const CheckpointPiece& piece : reader.pieces()) {
    RETURN_IF_ERROR(RestorePiece(reader, piece));
  }
  RETURN_IF_ERROR(
      LoadTables(reader, options_.placed->tables, LoadIntoShards(&chief)));
  RETURN_IF_ERROR(chief.Seal().status());
  const CheckpointManifest& manifest = reader.manifest();
  trained_ = absl::Seconds(manifest.trained_s());
  LoadedModel loaded;
  loaded.global_step = manifest.global_step();
  loaded.examples = manifest.examples();
  loaded.workers = std::move(rows.workers);
  loaded.ledger = std::move(rows.ledger);
  loaded.evaluations = manifest.evaluations();
  loaded.reached =
      IsPlateauReached(options_.goal.stop, loaded.evaluations)
          ? "plateau"
          : ReachedByChief(reader.path(), options_.goal, options_.reporter);
  options_.reporter.Info(absl::StrCat("restored ", reader.path()));
  if (!rows.note.empty()) options_.reporter.Info(rows.note);
  if (options_.read_from.space.has_value()) {
    options_.reporter.Info(absl::StrCat(
        GivenWeights(), " is not used: train_dir ", options_.train_dir,
        " has a checkpoint, and the training there goes on"));
  }
  SayIfDataChanged(manifest);
  return loaded;
}

void ModelLoader::SayIfDataChanged(const CheckpointManifest& manifest) const {
  // Older ones do not know.
  if (!manifest.has_data()) return;
  const std::string change = DescribeChange(manifest.data(), options_.data);
  if (change.empty()) return;
  options_.reporter.Info(absl::StrCat(
      "the training data are not those of the checkpoint, and the training "
      "goes on with them: ",
      change));
}

absl::Status ModelLoader::RestorePiece(const CheckpointReader& reader,
                                       const CheckpointPiece& piece) {
  const std::vector<TensorDef>& tensors = options_.placed->tensors;
  LoadRange range;
  while (tensors[range.tensor].name() != piece.parameter.name()) {
    ++range.tensor;  // CheckCompatible found every name.
  }
  const int64_t element_bytes = piece.size_bytes / piece.elements;
  std::vector<char> buffer;
  return ForEachRun(
      piece.elements, element_bytes, [&](int64_t offset, int64_t count) {
        buffer.resize(count * element_bytes);
        RETURN_IF_ERROR(OfFile(reader.Read(piece.parameter.name(), piece.slot,
                                           offset, count, buffer.data())));
        range.offset = offset;
        range.values = {buffer.data(), static_cast<int64_t>(buffer.size())};
        return options_.client->chief().Load(piece.slot, {range});
      });
}

LoadEvent ModelLoader::Initialize() {
  const absl::StatusOr<Values> values = MakeValues();
  if (!values.ok()) return LoadEvent{values.status(), true};
  const absl::StatusOr<std::string> read = ReadNamespace(*values);
  if (!read.ok()) return LoadEvent{read.status(), false};
  absl::StatusOr<LoadedModel> loaded = SendValues(*values, *read);
  // Rows are read as they are sent.
  const bool unusable = IsOfFile(loaded.status());
  return LoadEvent{std::move(loaded), unusable};
}

absl::StatusOr<ModelLoader::Values> ModelLoader::MakeValues() const {
  ASSIGN_OR_RETURN(Values values, options_.make_values());
  if (options_.weights == nullptr) return values;
  for (size_t i = 0; i < options_.placed->tensors.size(); ++i) {
    RETURN_IF_ERROR(
        Annotate(options_.weights->Read(i, values[i]),
                 absl::StrCat("start from ", options_.weights->source())));
  }
  return values;
}

absl::StatusOr<std::string> ModelLoader::ReadNamespace(
    const Values& values) const {
  if (!options_.read_from.space.has_value()) return "";
  if (!options_.placed->tables.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        GivenWeights(), ": the model has table '",
        options_.placed->tables[0].name(),
        "', and rows of another namespace are not read; take a checkpoint of "
        "it with --init_from"));
  }
  return ReadNamespaceWeights(
      options_.read_from, options_.client, options_.placed->tensors,
      [&values](int index) { return values[index]; }, options_.reporter);
}

absl::StatusOr<LoadedModel> ModelLoader::SendValues(const Values& values,
                                                    const std::string& read) {
  std::vector<LoadRange> ranges;
  for (const absl::Span<const float> tensor : values) {
    ranges.push_back({static_cast<int>(ranges.size()), 0, ViewOf(tensor)});
  }
  ChiefClient& chief = options_.client->chief();
  RETURN_IF_ERROR(chief.Define(options_.placed->definition).status());
  RETURN_IF_ERROR(chief.Load("", ranges));
  if (options_.weights != nullptr) {
    RETURN_IF_ERROR(options_.weights->rows().Load(LoadIntoShards(&chief)));
  }
  RETURN_IF_ERROR(chief.Seal().status());
  trained_ = absl::ZeroDuration();
  LoadedModel loaded;
  loaded.initialized = true;
  std::string line = absl::StrCat("initialized ", values.size(),
                                  " parameters with ", options_.values_source);
  if (options_.weights != nullptr) {
    absl::StrAppend(&line, ", ", options_.weights->num_tensors(),
                    " of them from ", options_.weights->source());
  }
  if (!read.empty()) absl::StrAppend(&line, ", ", read);
  options_.reporter.Info(line);
  return loaded;
}

}  // namespace muster
