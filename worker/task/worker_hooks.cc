#include "worker/task/worker_hooks.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/write_watch.h"
#include "common/cluster/task_id.h"
#include "common/rpc/call_table.h"
#include "common/rpc/protocol.h"
#include "worker/checkpoint/settled_evaluations.h"
#include "worker/hook/summary_writer.h"
#include "worker/task/evaluator.h"
#include "worker/task/run_data.h"
#include "worker/task/shown_training.h"
#include "worker/task/watch_options.h"
#include "worker/task/worker_options.h"

namespace muster {
namespace {

// For the counts that the summaries show.
constexpr absl::Duration kStateTimeout = absl::Seconds(10);

JobSummaries::Ask AskJobState(const StepStage* steps) {
  return [steps](ReplyCallback<JobState> done) {
    const WorkerOptions& options = steps->placed().options();
    WatchRequest request;
    *request.mutable_sender() = SenderOf(options);
    // None has this number: it is answered at once.
    request.set_state_version(-1);
    steps->coordination()->Call(kWatchCall, request,
                                options.clock->Now() + kStateTimeout,
                                std::move(done));
  };
}

}  // namespace

absl::StatusOr<std::unique_ptr<WorkerHooks>> WorkerHooks::Create(
    const Worker& worker) {
  auto made = absl::WrapUnique(new WorkerHooks(worker));
  ASSIGN_OR_RETURN(const SessionHooks::Options options, made->MakeOptions());
  SessionHooks::Parts parts = made->MakeParts();
  ASSIGN_OR_RETURN(parts.summaries, made->MakeSummaryParts());
  ASSIGN_OR_RETURN(made->hooks_, SessionHooks::Create(options, parts));
  if (made->hooks_->watched() != nullptr) {
    worker.chief->saver()->set_evaluations(
        [watched = made->hooks_->watched()] { return watched->history(); });
  }
  return made;
}

WorkerHooks::~WorkerHooks() {
  hooks_.reset();
  if (summaries_ == nullptr) return;
  worker_.chief->write_watch()->Watch("write of the last summaries",
                                      [this] { summaries_.reset(); });
}

absl::StatusOr<SessionHooks::Options> WorkerHooks::MakeOptions() const {
  const WorkerJob& job = placed().job();
  SessionHooks::Options options;
  options.task_name = TaskName(job.options.self);
  options.chief = job.is_chief();
  options.saves = !job.options.train_dir.empty();
  options.training = job.options.training;
  options.epoch = placed().epoch();
  options.progress.every = job.options.progress_every;
  if (BadRecords* const bad_records = worker_.steps->traits().bad_records) {
    options.progress.bad_records = [bad_records] {
      return bad_records->count();
    };
  }
  ASSIGN_OR_RETURN(options.profile, ProfileOptions());
  if (worker_.chief != nullptr && worker_.chief->evaluator() != nullptr) {
    ASSIGN_OR_RETURN(
        options.watch,
        WatchOptions(job.options.training, *worker_.steps->traits().model,
                     HalfName(WatchedHalf(job.options.training.input())),
                     job.options.reporter));
  }
  options.kept_training.train_dir = job.options.train_dir;
  options.kept_training.training = job.given_training;
  MakeDirAbsolute(options.kept_training.training.mutable_input());
  options.kept_training.schema = worker_.steps->traits().schema;
  return options;
}

absl::StatusOr<Profiler::Options> WorkerHooks::ProfileOptions() const {
  const WorkerOptions& options = placed().options();
  Profiler::Options profile;
  profile.steps = options.profiled;
  if (profile.steps.count > 0 && options.train_dir.empty()) {
    return absl::InvalidArgumentError(
        "--profile_steps wants a --train_dir to write the profile to");
  }
  profile.process_id = placed().job().worker_index();
  profile.spans = TimelineOptions();
  profile.path =
      absl::StrCat(options.train_dir, "/profile-", options.self.job(), "-",
                   options.self.index(), ".json");
  return profile;
}

StepTimeline::Options WorkerHooks::TimelineOptions() const {
  StepTimeline::Options spans;
  for (const TensorDef& tensor : placed().model().tensors) {
    spans.tensor_names.push_back(tensor.name());
  }
  spans.incarnation = placed().options().incarnation;
  return spans;
}

JobProfile::Options WorkerHooks::JobProfileOptions() const {
  JobProfile::Options profile;
  profile.sender = SenderOf(placed().options());
  profile.spans = TimelineOptions();
  profile.coordination = worker_.steps->coordination();
  profile.job_state = [session = worker_.session]() -> const JobState& {
    return (*session)->job_state();
  };
  profile.trace_devices =
      [runner = worker_.steps->runner()](const ProfiledSteps& steps) {
        runner->TraceDevices(steps);
      };
  return profile;
}

SessionHooks::Parts WorkerHooks::MakeParts() const {
  SessionHooks::Parts parts;
  parts.first = worker_.first;
  parts.write_file = [files = worker_.files](const std::string& path,
                                             const std::string& content) {
    return files->Write(path, content);
  };
  parts.progress_output = ProgressOutputOf(placed().options());
  parts.reporter = placed().options().reporter;
  parts.job_profile = JobProfileOptions();
  parts.clock = placed().options().clock;
  const auto* const session = worker_.session;
  parts.stop_job = [session](absl::string_view reason,
                             const absl::Status& failure) {
    (*session)->StopJob(reason, failure);
  };
  ChiefParts* const chief = worker_.chief;
  if (chief == nullptr) return parts;
  parts.write_watch = chief->write_watch();
  parts.trained = [chief](absl::Time now) {
    return chief->saver()->Trained(now);
  };
  parts.begin_save = [chief] { return chief->BeginSave(); };
  parts.after_last_save = [files = worker_.files, session](
                              const std::string& folder, const EndRecord& end) {
    files->MarkFinished(folder, end, (*session)->job_state().stop());
  };
  AddEvaluation(&parts);
  return parts;
}

void WorkerHooks::AddEvaluation(SessionHooks::Parts* parts) const {
  ChiefParts* const chief = worker_.chief;
  const auto* const session = worker_.session;
  const auto evaluate_with =
      [session](Evaluator* evaluator) -> Evaluation::Evaluate {
    if (evaluator == nullptr) return nullptr;
    return [evaluator, session] {
      return evaluator->Evaluate([session] { return (*session)->MayGoOn(); });
    };
  };
  parts->evaluate = evaluate_with(chief->evaluator());
  parts->evaluate_at_end = evaluate_with(chief->evaluator_at_end());
  parts->evaluate_cut = [chief, session](const PendingSave& cut) {
    return chief->evaluator()->Evaluate(
        cut.read, [session] { return (*session)->MayGoOn(); });
  };
  parts->settle_evaluations = [chief, options = &placed().options()](
                                  int64_t model_epoch,
                                  EvaluationHistory known) {
    return SettleEvaluations(chief->file_system(), options->train_dir,
                             model_epoch, std::move(known), options->reporter);
  };
}

absl::StatusOr<SummaryParts> WorkerHooks::MakeSummaryParts() {
  const WorkerOptions& options = placed().options();
  const StepTraits& traits = worker_.steps->traits();
  if (worker_.chief == nullptr || options.train_dir.empty() ||
      !HasSummaries(options.training)) {
    return SummaryParts();
  }
  summaries_ =
      MakeSummaryWriter(worker_.chief->file_system(), options.clock,
                        options.train_dir, kChiefJob, options.reporter);
  SummaryParts parts;
  parts.writer = summaries_.get();
  if (traits.model != nullptr && !traits.model->counts_correct()) {
    parts.accuracy_curve = AccuracyCurve::kNone;
  }
  parts.clock = options.clock;
  parts.ask_job_state = AskJobState(worker_.steps);
  ShownTraining shown;
  shown.training = &options.training;
  shown.training_set = traits.training_set;
  shown.batch_size = traits.shape.batch_size;
  shown.devices = traits.own_devices;
  const EpochLength& epoch = placed().epoch();
  shown.epoch_updates = epoch.rows / std::max<int64_t>(epoch.update_rows, 1);
  const TrainingResult run = worker_.files->DescribeRun();
  shown.replication = run.replication;
  shown.accumulate_batches = run.accumulate_batches;
  shown.num_ps = run.num_ps;
  shown.num_workers = run.num_workers;
  shown.overrides = options.overrides;
  RETURN_IF_ERROR(AddShownParts(shown, &parts));
  parts.reporter = options.reporter;
  return parts;
}

}  // namespace muster
