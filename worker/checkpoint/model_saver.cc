#include "worker/checkpoint/model_saver.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "common/base/finite.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/manifest_file.h"
#include "common/checkpoint/train_dir.h"
#include "common/rpc/call_table.h"
#include "common/tensor/shape.h"
#include "worker/checkpoint/chief_tables.h"
#include "worker/checkpoint/held_steps.h"
#include "worker/checkpoint/table_transfer.h"
#include "worker/client/call_status.h"
#include "worker/client/link/blocking_call.h"

namespace muster {
namespace {

constexpr absl::Duration kCallTimeout = absl::Seconds(10);
// A cut fails if the shards need more than the second for which rounds are
// held: a machine that was stopped for a moment.
constexpr int kCutAttempts = 5;

// Has ps task 0 remember the rows of steps from now on; returns the job's
// state.
absl::StatusOr<BeginCutReply> BeginCut(Link* coordination, const Clock& clock,
                                       const BeginCutRequest& request) {
  return BlockingCall<BeginCutReply>(clock, [&](auto done) {
    coordination->Call(kBeginCutCall, request, clock.Now() + kCallTimeout,
                       std::move(done));
  });
}

void AddCut(int ps_task, const BeginSnapshotReply& cut,
            CheckpointManifest* manifest) {
  ShardCut* shard = manifest->add_shards();
  shard->set_ps_task(ps_task);
  shard->set_version(cut.version());
  for (const DuplicateMark& mark : cut.marks()) {
    WorkerMark* saved = shard->add_marks();
    saved->set_job(mark.sender().task().job());
    saved->set_index(mark.sender().task().index());
    saved->set_incarnation(mark.sender().incarnation());
    saved->set_step(mark.step());
    *saved->mutable_parts() = mark.parts();
  }
}

// A gradient that is finite can still make an update overflow. Restored, such
// a model could only fail; the checkpoint before it is the one to keep. The
// code is none that the session takes for a lost peer, to be tried again.
absl::Status CheckFinite(const CheckpointPiece& piece, int64_t offset,
                         absl::Span<const float> values) {
  const int64_t bad = FirstNonFinite(values);
  if (bad < 0) return absl::OkStatus();
  return absl::OutOfRangeError(absl::StrCat(
      "save '", PieceName(piece), "': element ", offset + bad, " of ",
      piece.elements, " is ", values[bad],
      ", wanted a finite number; earlier checkpoints are kept. Lower the "
      "learning rate, or set non_finite.allow to save it as it is"));
}

// The newest manifest that can be read.
std::optional<CheckpointManifest> NewestManifest(FileSystem* file_system,
                                                 const std::string& train_dir) {
  if (train_dir.empty()) return std::nullopt;
  const absl::StatusOr<std::vector<int64_t>> steps =
      ListCheckpoints(file_system, train_dir);
  if (!steps.ok()) return std::nullopt;
  for (const int64_t step : *steps) {
    absl::StatusOr<CheckpointManifest> manifest = ReadManifestFile(
        file_system, absl::StrCat(train_dir, "/", CheckpointName(step)));
    if (manifest.ok()) return *std::move(manifest);
  }
  return std::nullopt;
}

// How long the run of a train_dir has trained; 0 without a checkpoint.
absl::Duration TrainedTime(FileSystem* file_system,
                           const std::string& train_dir) {
  const std::optional<CheckpointManifest> newest =
      NewestManifest(file_system, train_dir);
  return newest.has_value() ? absl::Seconds(newest->trained_s())
                            : absl::ZeroDuration();
}

}  // namespace

ModelSaver::ModelSaver(Options options) : options_(std::move(options)) {}

void ModelSaver::Enter(int64_t model_epoch,
                       std::optional<absl::Duration> trained) {
  model_epoch_ = model_epoch;
  if (options_.rounds != nullptr) options_.rounds->Enter(model_epoch);
  if (!trained.has_value() && trained_before_.has_value()) return;
  trained_before_ = trained.has_value()
                        ? *trained
                        : TrainedTime(options_.file_system, options_.train_dir);
  start_ = options_.clock->Now();
}

absl::Duration ModelSaver::Trained(absl::Time now) const {
  return *trained_before_ + std::max(now - start_, absl::ZeroDuration());
}

absl::StatusOr<ModelSaver::Moment> ModelSaver::Cut() {
  absl::StatusOr<Moment> moment = CutOnce();
  for (int attempt = 1; attempt < kCutAttempts; ++attempt) {
    // Aborted: a shard is past the update, or a worker was started anew between
    // the cuts. The cuts of the others are ended by the next.
    if (!absl::IsAborted(moment.status())) break;
    moment = CutOnce();
  }
  return moment;
}

absl::StatusOr<ModelSaver::Moment> ModelSaver::CutOnce() {
  return options_.rounds != nullptr ? CutPausedRounds() : CutRunningSteps();
}

absl::StatusOr<ModelSaver::Moment> ModelSaver::CutRunningSteps() {
  BeginCutRequest begin;
  *begin.mutable_sender() = options_.sender;
  begin.set_model_epoch(model_epoch_);
  begin.set_cut(++cuts_begun_);
  ASSIGN_OR_RETURN(BeginCutReply begun,
                   BeginCut(options_.coordination, *options_.clock, begin));
  Moment moment;
  moment.state = std::move(*begun.mutable_state());
  ASSIGN_OR_RETURN(moment.cuts, options_.client->chief().BeginSnapshot());
  ASSIGN_OR_RETURN(ConfirmCutReply reply, ConfirmCut(moment.cuts));
  moment.ledger = std::move(*reply.mutable_ledger());
  const int64_t reported = moment.state.global_step();
  RETURN_IF_ERROR(CountHeldSteps(reply, &moment.state));
  moment.has_unreported = moment.state.global_step() > reported;
  return moment;
}

absl::StatusOr<ConfirmCutReply> ModelSaver::ConfirmCut(const Cuts& cuts) const {
  const std::vector<HeldStep> held = StepsOnAllShards(cuts);
  const std::vector<HeldStep> begun = BegunSteps(cuts);
  ConfirmCutRequest request;
  *request.mutable_sender() = options_.sender;
  request.set_model_epoch(model_epoch_);
  request.mutable_held()->Assign(held.begin(), held.end());
  request.mutable_begun()->Assign(begun.begin(), begun.end());
  return BlockingCall<ConfirmCutReply>(*options_.clock, [&](auto done) {
    options_.coordination->Call(kConfirmCutCall, request,
                                options_.clock->Now() + kCallTimeout,
                                std::move(done));
  });
}

absl::StatusOr<ModelSaver::Moment> ModelSaver::CutPausedRounds() const {
  ASSIGN_OR_RETURN(const PauseRoundsReply held, options_.rounds->Hold());
  absl::StatusOr<Cuts> cuts =
      options_.client->chief().BeginSnapshot(held.token());
  options_.rounds->Release();
  RETURN_IF_ERROR(cuts.status());
  return Moment{held.state(), *std::move(cuts), held.ledger()};
}

CheckpointManifest ModelSaver::MakeManifest(const Moment& moment) const {
  const JobState& state = moment.state;
  CheckpointManifest manifest;
  manifest.set_global_step(state.global_step());
  manifest.set_model_epoch(model_epoch_);
  manifest.set_fingerprint(options_.placed->definition.fingerprint);
  manifest.set_seed(options_.seed);
  *manifest.mutable_schema() = options_.schema;
  // A stamp for people; the clock may be wrong or be set.
  manifest.set_saved_unix_ms(absl::ToUnixMillis(options_.wall_now()));
  manifest.set_trained_s(absl::ToDoubleSeconds(Trained(options_.clock->Now())));
  *manifest.mutable_optimizer() = options_.placed->definition.optimizer;
  SaveRows(state, moment.ledger, options_.rows, &manifest);
  for (size_t i = 0; i < moment.cuts.size(); ++i) {
    AddCut(static_cast<int>(i), moment.cuts[i], &manifest);
  }
  if (evaluations_ != nullptr) {
    *manifest.mutable_evaluations() = evaluations_();
  }
  return manifest;
}

absl::StatusOr<PendingSave> ModelSaver::Begin() {
  ASSIGN_OR_RETURN(Moment moment, Cut());
  PendingSave save;
  save.global_step = moment.state.global_step();
  save.has_unreported = moment.has_unreported;
  const CheckpointManifest manifest = MakeManifest(moment);
  save.read = [this, cuts = moment.cuts](auto into) {
    return Read(cuts, into);
  };
  save.write = [this, manifest, cuts = moment.cuts] {
    return Write(cuts, manifest, /*best=*/false);
  };
  save.write_best = [this, manifest,
                     cuts = moment.cuts](const EvaluationHistory& history) {
    CheckpointManifest best = manifest;
    *best.mutable_evaluations() = history;
    return Write(cuts, best, /*best=*/true);
  };
  save.discard = [this, cuts = moment.cuts] {
    // A shard that is gone has no snapshot left to end.
    options_.client->chief().EndSnapshot(cuts).IgnoreError();
  };
  return save;
}

absl::Status ModelSaver::Read(const Cuts& cuts,
                              absl::Span<const MutableTensorView> into) const {
  for (size_t i = 0; i < into.size(); ++i) {
    const TensorDef& tensor = options_.placed->tensors[i];
    RETURN_IF_ERROR(options_.client->chief().ReadSnapshot(
        cuts, static_cast<int>(i), /*slot=*/"", /*offset=*/0,
        NumElements(tensor.shape()), into[i].data));
  }
  return absl::OkStatus();
}

bool ModelSaver::IsBestSaved(const CheckpointManifest& manifest) const {
  const EvaluationHistory& evaluations = manifest.evaluations();
  if (!evaluations.has_kept() ||
      evaluations.kept().best_step() != manifest.global_step()) {
    return false;
  }
  return ReadManifestFile(options_.file_system,
                          absl::StrCat(options_.train_dir, "/",
                                       CheckpointName(manifest.global_step())))
      .ok();
}

absl::StatusOr<std::string> ModelSaver::Write(
    const Cuts& cuts, const CheckpointManifest& manifest, bool best) const {
  // Others may have pushed parts of steps since the best one was cut: its
  // values are those that were evaluated, and as good to go on from.
  absl::StatusOr<std::string> path =
      !best && IsBestSaved(manifest)
          ? absl::StrCat(options_.train_dir, "/",
                         CheckpointName(manifest.global_step()))
          : WriteFiles(cuts, manifest);
  // A shard that is gone has no snapshot left to end.
  options_.client->chief().EndSnapshot(cuts).IgnoreError();
  if (path.ok()) Report(manifest);
  return path;
}

// Should it get lost, ps task 0 takes more steps for unsaved than are, until
// the next save.
void ModelSaver::Report(const CheckpointManifest& manifest) const {
  ReportSaveRequest request;
  *request.mutable_sender() = options_.sender;
  request.set_global_step(manifest.global_step());
  request.set_model_epoch(manifest.model_epoch());
  options_.coordination->Call(kReportSaveCall, request,
                              options_.clock->Now() + kCallTimeout,
                              [](const absl::StatusOr<ReportSaveReply>&) {});
}

absl::StatusOr<std::string> ModelSaver::WriteFiles(
    const Cuts& cuts, const CheckpointManifest& manifest) const {
  CheckpointWriter::Options options;
  options.file_system = options_.file_system;
  options.train_dir = options_.train_dir;
  options.global_step = manifest.global_step();
  options.retention = options_.retention;
  ASSIGN_OR_RETURN(const std::vector<SavedTable> tables,
                   TablesOf(options_.placed->tables, cuts));
  ASSIGN_OR_RETURN(
      const std::unique_ptr<CheckpointWriter> writer,
      OfFile(CheckpointWriter::Create(options, options_.placed->tensors,
                                      options_.slots, tables)));
  for (const CheckpointPiece& piece : writer->pieces()) {
    RETURN_IF_ERROR(CopyPiece(cuts, piece, writer.get()));
  }
  RETURN_IF_ERROR(SaveTables({tables, static_cast<int>(cuts.size()),
                              options_.placed->definition.allow_non_finite,
                              RowsOfSnapshots(&options_.client->chief(), cuts)},
                             writer.get()));
  ASSIGN_OR_RETURN(const CheckpointWriter::Committed committed,
                   OfFile(writer->Commit(manifest)));
  for (const std::string& warning : committed.warnings) {
    options_.reporter.Info(warning);
  }
  return committed.path;
}

absl::Status ModelSaver::CopyPiece(const Cuts& cuts,
                                   const CheckpointPiece& piece,
                                   CheckpointWriter* writer) const {
  int tensor = 0;
  while (options_.placed->tensors[tensor].name() != piece.parameter.name()) {
    ++tensor;  // The writer was given the same tensors.
  }
  const int64_t element_bytes = piece.size_bytes / piece.elements;
  std::vector<char> buffer;
  return ForEachRun(
      piece.elements, element_bytes, [&](int64_t offset, int64_t count) {
        buffer.resize(count * element_bytes);
        RETURN_IF_ERROR(options_.client->chief().ReadSnapshot(
            cuts, tensor, piece.slot, offset, count, buffer.data()));
        if (piece.dtype == FLOAT32 &&
            !options_.placed->definition.allow_non_finite) {
          RETURN_IF_ERROR(
              CheckFinite(piece, offset,
                          {reinterpret_cast<const float*>(buffer.data()),
                           static_cast<size_t>(count)}));
        }
        return OfFile(writer->Append({buffer.data(), buffer.size()}));
      });
}

int64_t NewestSavedStep(FileSystem* file_system, const std::string& train_dir) {
  const std::optional<CheckpointManifest> newest =
      NewestManifest(file_system, train_dir);
  return newest.has_value() ? newest->global_step() : -1;
}

}  // namespace muster
