#include "worker/task/chief_parts.h"

#include <string>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/posix_file_system.h"
#include "common/checkpoint/train_dir.h"
#include "common/optimizer/update_rule.h"
#include "common/rpc/call_table.h"
#include "worker/client/call_status.h"
#include "worker/input/row_position.h"
#include "worker/training/replication_settings.h"

namespace muster {
namespace {

constexpr absl::Duration kReportTimeout = absl::Seconds(10);

// Says what is not as it is by default.
void ReportReplication(const WorkerOptions& options) {
  const ReplicationSpec& replication = options.training.replication();
  if (replication.has_async() && ReplicationNumbers(replication).empty()) {
    return;
  }
  options.reporter.Info(
      absl::StrCat("replication: ",
                   options.cluster.is_all_reduce()
                       ? "all_reduce, in which the workers hold parameters: "
                       : "",
                   DescribeReplication(replication)));
}

TakenRows TakenRowsOf(const StepTraits& traits) {
  return {traits.num_examples, traits.shape.worker_rows(), traits.order};
}

}  // namespace

absl::StatusOr<std::unique_ptr<ChiefParts>> ChiefParts::Create(
    const StepStage* steps, std::unique_ptr<CompiledModel> test_model,
    std::function<bool()> go_on) {
  auto parts = absl::WrapUnique(new ChiefParts(*steps));
  ReportReplication(parts->options());
  parts->test_model_ = std::move(test_model);
  parts->CreateWriteWatch();
  RETURN_IF_ERROR(parts->write_watch()->Watch("opening of --train_dir", [&] {
    return OfFile(parts->OpenTrainDir(std::move(go_on)));
  }));
  RETURN_IF_ERROR(parts->CreateLoader());
  parts->CreateSaver();
  parts->CreateEvaluators();
  return parts;
}

void ChiefParts::CreateWriteWatch() {
  WriteWatch::Options watch;
  watch.clock = options().clock;
  watch.limit =
      absl::Seconds(options().training.checkpoint().max_save_seconds());
  watch.reporter = options().reporter;
  watch.report = [this](const std::string& overdue) {
    ReportSaveRequest request;
    *request.mutable_sender() = SenderOf(options());
    request.set_overdue(overdue);
    // Should it get lost, it is said again or forgotten.
    steps_.coordination()->Call(kReportSaveCall, request,
                                options().clock->Now() + kReportTimeout,
                                [](const absl::StatusOr<ReportSaveReply>&) {});
  };
  write_watch_ = std::make_unique<WriteWatch>(std::move(watch));
}

absl::Status ChiefParts::OpenTrainDir(std::function<bool()> go_on) {
  file_system_ = std::make_unique<PosixFileSystem>();
  restored_files_ = std::make_unique<PosixFileSystem>(std::move(go_on));
  if (options().train_dir.empty()) {
    if (options().training.checkpoint().has_keep_best()) {
      return absl::InvalidArgumentError(
          "checkpoint.keep_best wants a --train_dir to keep the best "
          "checkpoint in");
    }
    options().reporter.Info("no --train_dir: nothing is saved");
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(
      lock_, TrainDirLock::Acquire(options().train_dir, {options().incarnation,
                                                         options().reporter}));
  // A chief that was killed in a save has left parts of it there.
  RETURN_IF_ERROR(CleanTrainDir(file_system_.get(), options().train_dir));
  return ProbeTrainDir(file_system_.get(), options().train_dir);
}

absl::Status ChiefParts::CheckHeld() const {
  return lock_ == nullptr ? absl::OkStatus() : OfFile(lock_->CheckHeld());
}

absl::StatusOr<PendingSave> ChiefParts::BeginSave() {
  RETURN_IF_ERROR(write_watch_->Watch("look at the --train_dir",
                                      [this] { return CheckHeld(); }));
  return saver_->Begin();
}

absl::Status ChiefParts::CreateLoader() {
  InitialWeights::Options init = options().init;
  init.tables = steps_.placed().model().tables;
  ASSIGN_OR_RETURN(
      weights_, write_watch_->WatchRead("opening of the initial weights", [&] {
        return InitialWeights::OpenForRun(
            restored_files_.get(), init, steps_.placed().model().tensors,
            options().train_dir, options().reporter);
      }));
  ModelLoader::Options load;
  load.file_system = restored_files_.get();
  load.train_dir = options().train_dir;
  load.client = steps_.client();
  load.placed = &steps_.placed().model();
  load.make_values = [this] { return steps_.MakeInitialValues(); };
  load.values_source = steps_.traits().values_source;
  load.weights = weights_.get();
  load.read_from = options().read_from;
  load.tasks = steps_.placed().job().tasks;
  load.rows = TakenRowsOf(steps_.traits());
  load.goal.stop = options().training.stop();
  load.data = steps_.traits().schema.training().files();
  load.reporter = options().reporter;
  load.watch = write_watch_.get();
  loader_ = std::make_unique<ModelLoader>(load);
  return absl::OkStatus();
}

void ChiefParts::CreateSaver() {
  ModelSaver::Options save;
  save.sender = SenderOf(options());
  if (options().training.replication().has_sync()) {
    rounds_ = std::make_unique<RoundPauser>(options().clock,
                                            steps_.coordination(), save.sender);
  }
  save.clock = options().clock;
  save.file_system = file_system_.get();
  save.train_dir = options().train_dir;
  save.client = steps_.client();
  save.coordination = steps_.coordination();
  save.rounds = rounds_.get();
  save.placed = &steps_.placed().model();
  save.rows = TakenRowsOf(steps_.traits());
  for (const SlotDef& slot : steps_.placed().update_rule()->slots())
    save.slots.push_back(slot.name);
  save.seed = options().training.seed();
  save.schema = steps_.traits().schema;
  const CheckpointSpec& checkpoint = options().training.checkpoint();
  save.retention = {checkpoint.keep(), checkpoint.keep_every_hours()};
  save.reporter = options().reporter;
  saver_ = std::make_unique<ModelSaver>(save);
}

void ChiefParts::CreateEvaluators() {
  const StepTraits& traits = steps_.traits();
  for (const DataSet* half : {traits.validation_set, traits.test_set}) {
    if (half == nullptr) continue;
    (evaluator_ == nullptr ? evaluator_ : evaluator_at_end_) =
        std::make_unique<Evaluator>(options().training.evaluation(), half,
                                    test_model_.get(), steps_.client(),
                                    rounds_.get(), traits.bad_records,
                                    ProgressOutputOf(options()));
  }
}

}  // namespace muster
