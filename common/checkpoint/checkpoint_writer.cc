#include "common/checkpoint/checkpoint_writer.h"

#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/manifest.h"
#include "common/checkpoint/manifest_file.h"
#include "common/checkpoint/train_dir.h"
#include "common/rpc/protocol.h"

namespace muster {
namespace {

int64_t DataBytes(const std::vector<SafetensorsEntry>& entries) {
  return entries.empty() ? 0 : entries.back().end;
}

}  // namespace

CheckpointWriter::CheckpointWriter(Options options,
                                   absl::Span<const TensorDef> parameters,
                                   absl::Span<const std::string> slots,
                                   absl::Span<const SavedTable> tables,
                                   CheckpointLayout layout)
    : options_(std::move(options)),
      parameters_(parameters.begin(), parameters.end()),
      slots_(slots.begin(), slots.end()),
      tables_(tables.begin(), tables.end()),
      layout_(std::move(layout)),
      temporary_(PathOf(TemporaryName(options_.global_step))),
      parameter_bytes_left_(DataBytes(layout_.parameters)) {
  for (const SavedTable& table : tables_) {
    table_orders_.emplace_back(table.definition().name());
  }
}

absl::StatusOr<std::unique_ptr<CheckpointWriter>> CheckpointWriter::Create(
    Options options, absl::Span<const TensorDef> parameters,
    absl::Span<const std::string> slots, absl::Span<const SavedTable> tables) {
  if (options.global_step < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("save of global step ", options.global_step));
  }
  ASSIGN_OR_RETURN(CheckpointLayout layout,
                   LayOutCheckpoint(parameters, slots, tables));
  RETURN_IF_ERROR(CleanTrainDir(options.file_system, options.train_dir));
  std::unique_ptr<CheckpointWriter> writer(new CheckpointWriter(
      std::move(options), parameters, slots, tables, std::move(layout)));
  RETURN_IF_ERROR(writer->StartFiles());
  return writer;
}

CheckpointWriter::~CheckpointWriter() {
  if (!started_) return;
  // Best effort: the next writer removes what is left. The files are closed
  // first, so that their space is free at once.
  parameters_file_.reset();
  slots_file_.reset();
  tables_file_.reset();
  options_.file_system->Remove(temporary_).IgnoreError();
}

std::string CheckpointWriter::PathOf(const std::string& name) const {
  return absl::StrCat(options_.train_dir, "/", name);
}

absl::Status CheckpointWriter::StartFiles() {
  RETURN_IF_ERROR(options_.file_system->CreateFolder(temporary_));
  started_ = true;
  ASSIGN_OR_RETURN(
      parameters_file_,
      SafetensorsWriter::Create(options_.file_system,
                                absl::StrCat(temporary_, "/", kParametersFile),
                                layout_.parameters));
  ASSIGN_OR_RETURN(slots_file_, SafetensorsWriter::Create(
                                    options_.file_system,
                                    absl::StrCat(temporary_, "/", kSlotsFile),
                                    layout_.slots));
  if (tables_.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(tables_file_, SafetensorsWriter::Create(
                                     options_.file_system,
                                     absl::StrCat(temporary_, "/", kTablesFile),
                                     layout_.tables));
  return absl::OkStatus();
}

absl::Status CheckpointWriter::Append(absl::string_view data) {
  const absl::string_view parameter_data = data.substr(
      0, std::min(data.size(), static_cast<size_t>(parameter_bytes_left_)));
  RETURN_IF_ERROR(parameters_file_->Append(parameter_data));
  parameter_bytes_left_ -= static_cast<int64_t>(parameter_data.size());
  data.remove_prefix(parameter_data.size());
  if (data.empty()) return absl::OkStatus();
  return slots_file_->Append(data);
}

absl::Status CheckpointWriter::AppendRows(int table, const RowBlock& rows) {
  if (rows.rows() == 0) return absl::OkStatus();
  RETURN_IF_ERROR(table_orders_[table].Add(rows.ids()));
  const std::vector<std::string> streams = TableStreams(tables_[table]);
  for (size_t i = 0; i < streams.size(); ++i) {
    const auto entry =
        absl::c_find_if(layout_.tables, [&](const SafetensorsEntry& entry) {
          return entry.name == streams[i];
        });
    RETURN_IF_ERROR(tables_file_->AppendTo(entry - layout_.tables.begin(),
                                           rows.stream_bytes(i)));
  }
  return absl::OkStatus();
}

absl::StatusOr<CheckpointWriter::Committed> CheckpointWriter::Commit(
    CheckpointManifest manifest) {
  RETURN_IF_ERROR(FinishFiles(&manifest));
  RETURN_IF_ERROR(WriteManifest(manifest));
  RETURN_IF_ERROR(options_.file_system->SyncFolder(temporary_));
  RETURN_IF_ERROR(Publish());
  Committed committed;
  committed.path = PathOf(CheckpointName(options_.global_step));
  std::optional<int64_t> best_step;
  if (manifest.evaluations().has_kept()) {
    best_step = manifest.evaluations().kept().best_step();
  }
  committed.warnings = RemoveOld(best_step);
  return committed;
}

absl::Status CheckpointWriter::FinishFiles(CheckpointManifest* manifest) {
  RETURN_IF_ERROR(parameters_file_->Finish());
  RETURN_IF_ERROR(slots_file_->Finish());
  if (tables_file_ != nullptr) RETURN_IF_ERROR(tables_file_->Finish());
  manifest->set_muster_version(std::string(kMusterVersion));
  manifest->set_global_step(options_.global_step);
  manifest->mutable_parameters()->Assign(parameters_.begin(),
                                         parameters_.end());
  manifest->mutable_slots()->Assign(slots_.begin(), slots_.end());
  manifest->mutable_tables()->Assign(tables_.begin(), tables_.end());
  manifest->clear_files();
  manifest->clear_tensors();
  Describe(kParametersFile, *parameters_file_, manifest);
  Describe(kSlotsFile, *slots_file_, manifest);
  if (tables_file_ != nullptr) Describe(kTablesFile, *tables_file_, manifest);
  return absl::OkStatus();
}

void CheckpointWriter::Describe(const std::string& file,
                                const SafetensorsWriter& writer,
                                CheckpointManifest* manifest) const {
  CheckpointFile* const entry = manifest->add_files();
  entry->set_name(file);
  entry->set_bytes(writer.file_bytes());
  for (size_t i = 0; i < writer.entries().size(); ++i) {
    CheckpointTensor* const tensor = manifest->add_tensors();
    tensor->set_name(writer.entries()[i].name);
    tensor->set_crc32c(writer.crcs()[i]);
  }
}

absl::Status CheckpointWriter::WriteManifest(
    const CheckpointManifest& manifest) {
  ASSIGN_OR_RETURN(const std::string text, FormatManifest(manifest));
  const std::string path = absl::StrCat(temporary_, "/", kManifestFile);
  ASSIGN_OR_RETURN(std::unique_ptr<WritableFile> file,
                   options_.file_system->CreateFile(path));
  RETURN_IF_ERROR(file->Append(text));
  RETURN_IF_ERROR(file->Sync());
  file.reset();
  ASSIGN_OR_RETURN(const std::unique_ptr<ReadableFile> written,
                   options_.file_system->OpenFile(path));
  std::string found(static_cast<size_t>(written->size_bytes()), '\0');
  RETURN_IF_ERROR(written->ReadAt(0, written->size_bytes(), found.data()));
  if (found == text) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(
      "verify '", path, "': its bytes are not those that were written"));
}

absl::Status CheckpointWriter::Publish() {
  FileSystem* const fs = options_.file_system;
  ASSIGN_OR_RETURN(const std::vector<int64_t> steps,
                   ListCheckpoints(fs, options_.train_dir));
  const bool replaces = absl::c_linear_search(steps, options_.global_step);
  RETURN_IF_ERROR(Replace(replaces));
  const absl::Status synced = fs->SyncFolder(options_.train_dir);
  // Nobody knows what of the renames is on the disk, and a second fsync would
  // not say: this checkpoint is given up, and another will be written anew.
  if (!synced.ok()) Withdraw(replaces);
  started_ = !synced.ok();
  return synced;
}

// The same step again: after a restore, or when the one there is damaged. A
// folder cannot be renamed onto another, so the old one steps aside;
// CleanTrainDir puts it back if we die here.
absl::Status CheckpointWriter::Replace(bool replaces) {
  FileSystem* const fs = options_.file_system;
  const std::string path = PathOf(CheckpointName(options_.global_step));
  const std::string replaced = PathOf(ReplacedName(options_.global_step));
  if (replaces) RETURN_IF_ERROR(fs->Rename(path, replaced));
  const absl::Status renamed = fs->Rename(temporary_, path);
  if (!renamed.ok() && replaces) fs->Rename(replaced, path).IgnoreError();
  return renamed;
}

// Undoes Replace. Best effort: what is left is a whole checkpoint either way.
void CheckpointWriter::Withdraw(bool replaces) {
  FileSystem* const fs = options_.file_system;
  const std::string path = PathOf(CheckpointName(options_.global_step));
  const absl::Status withdrawn = fs->Rename(path, temporary_);
  if (!withdrawn.ok() || !replaces) return;
  fs->Rename(PathOf(ReplacedName(options_.global_step)), path).IgnoreError();
}

// Those that count for this one's retention, the newest first.
absl::StatusOr<std::vector<SavedCheckpoint>> CheckpointWriter::ListSaved()
    const {
  FileSystem* const fs = options_.file_system;
  ASSIGN_OR_RETURN(const std::vector<int64_t> steps,
                   ListCheckpoints(fs, options_.train_dir));
  std::vector<SavedCheckpoint> saved;
  for (const int64_t step : steps) {
    // A larger step is one that a restore has passed over. It is not ours to
    // judge, but it does not count.
    if (step > options_.global_step) continue;
    SavedCheckpoint checkpoint;
    checkpoint.global_step = step;
    if (options_.retention.keep_every_hours > 0) {
      const absl::StatusOr<CheckpointManifest> manifest =
          ReadManifestFile(fs, PathOf(CheckpointName(step)));
      if (manifest.ok()) checkpoint.trained_s = manifest->trained_s();
    }
    saved.push_back(checkpoint);
  }
  return saved;
}

// First out of sight, so that nobody sees half of it.
absl::Status CheckpointWriter::RemoveCheckpoint(int64_t global_step) const {
  FileSystem* const fs = options_.file_system;
  const std::string hidden = PathOf(TemporaryName(global_step));
  RETURN_IF_ERROR(fs->Rename(PathOf(CheckpointName(global_step)), hidden));
  return fs->Remove(hidden);
}

std::vector<std::string> CheckpointWriter::RemoveOld(
    std::optional<int64_t> best_step) const {
  std::vector<std::string> warnings;
  const auto note = [&warnings](const absl::Status& status) {
    if (!status.ok()) warnings.push_back(std::string(status.message()));
  };
  // Only a replaced folder of this step can be there.
  note(CleanTrainDir(options_.file_system, options_.train_dir));
  const absl::StatusOr<std::vector<SavedCheckpoint>> saved = ListSaved();
  note(saved.status());
  if (!saved.ok()) return warnings;
  for (const int64_t step :
       CheckpointsToRemove(*saved, options_.retention, best_step)) {
    note(RemoveCheckpoint(step));
  }
  return warnings;
}

}  // namespace muster
