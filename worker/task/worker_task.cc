#include "worker/task/worker_task.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/base/fingerprint.h"
#include "common/base/read_file.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/posix_file_system.h"
#include "common/checkpoint/train_dir.h"
#include "common/checkpoint/write_watch.h"
#include "common/cluster/placement_table.h"
#include "common/cluster/task_id.h"
#include "common/codec/codec.h"
#include "common/optimizer/update_rule.h"
#include "common/rpc/call_table.h"
#include "common/rpc/protocol.h"
#include "common/tensor/dtype.h"
#include "common/tensor/shape.h"
#include "worker/checkpoint/finished_run.h"
#include "worker/client/call_status.h"
#include "worker/client/client_model.h"
#include "worker/hook/summary_writer.h"
#include "worker/input/data_set/create_data_set.h"
#include "worker/input/data_set/data_schema.h"
#include "worker/input/data_set/data_sections.h"
#include "worker/input/data_set/say_remarks.h"
#include "worker/input/input_threads.h"
#include "worker/step/make_exchange.h"
#include "worker/task/kept_training.h"
#include "worker/task/result_file.h"
#include "worker/task/run_data.h"
#include "worker/task/run_speed.h"
#include "worker/task/shown_training.h"
#include "worker/tower/gradient_clipper.h"
#include "worker/training/class_outputs.h"
#include "worker/training/place_model.h"
#include "worker/training/replication_settings.h"
#include "worker/training/scale_optimizer.h"
#include "worker/training/schedule_length.h"
#include "worker/training/training_parts.h"
#include "worker/training/training_spec.h"
#include "worker/training/update_place.h"

namespace muster {
namespace {

// For the counts that the summaries show.
constexpr absl::Duration kStateTimeout = absl::Seconds(10);

// How long the question for a step waits at ps 0 for other workers: as long as
// it takes until the operator is told whom.
constexpr absl::Duration kStepWait = absl::Seconds(1);

}  // namespace

absl::StatusOr<std::unique_ptr<WorkerTask>> WorkerTask::Create(
    WorkerOptions options, WorkerLinks links) {
  const int replicas =
      options.cluster.empty()
          ? 1
          : static_cast<int>(options.cluster.training_tasks().size());
  TrainingSpec given = options.training;
  RETURN_IF_ERROR(
      FitReplication(replicas, options.training.mutable_replication()));
  if (!options.cluster.empty())
    RETURN_IF_ERROR(CheckTextSize(options.training));
  auto task = absl::WrapUnique(new WorkerTask(std::move(options)));
  task->given_training_ = std::move(given);
  RETURN_IF_ERROR(task->CreateParts(std::move(links)));
  return task;
}

WorkerTask::WorkerTask(WorkerOptions options) : options_(std::move(options)) {
  if (options_.cluster.empty()) {
    chief_task_ = options_.self;
    tasks_ = {options_.self};
    ps_addresses_ = {""};
    return;
  }
  chief_task_ = options_.cluster.chief();
  tasks_ = options_.cluster.training_tasks();
  ps_addresses_ = options_.cluster.ps_addresses();
}

WorkerTask::~WorkerTask() {
  session_.reset();
  hooks_.reset();
  if (summaries_ == nullptr) return;
  chief_->write_watch()->Watch("write of the last summaries",
                               [this] { summaries_.reset(); });
}

absl::Status WorkerTask::CreateParts(WorkerLinks links) {
  RETURN_IF_ERROR(CreateHealth());
  RETURN_IF_ERROR(CreateTowers());
  WriteWatch::Options watch;
  watch.clock = options_.clock;
  watch.reporter = options_.reporter;
  RETURN_IF_ERROR(WriteWatch(watch).WatchRead("opening of the data",
                                              [this] { return CreateData(); }));
  RETURN_IF_ERROR(FitOptimizer());
  RETURN_IF_ERROR(CreateModel());
  coordination_ = std::move(links.coordination);
  RETURN_IF_ERROR(CreateClient(std::move(links.shards)));
  RETURN_IF_ERROR(PlaceParameterUpdates());
  RETURN_IF_ERROR(CreateLoop());
  if (is_chief()) RETURN_IF_ERROR(CreateChiefParts());
  RETURN_IF_ERROR(CreateHooks());
  CreateSession();
  return absl::OkStatus();
}

absl::Status WorkerTask::CreateHealth() {
  if (options_.listen_address.empty()) return absl::OkStatus();
  PortWait wait;
  wait.clock = options_.clock;
  wait.latch = options_.latch;
  wait.reporter = options_.reporter;
  ASSIGN_OR_RETURN(health_, HealthServer::Start(options_.listen_address, wait,
                                                options_.credentials));
  return absl::OkStatus();
}

absl::Status WorkerTask::CreateTowers() {
  const DeviceChoice& choice = options_.device_choice;
  ASSIGN_OR_RETURN(const ChosenDevices devices, ChooseDevices(choice));
  if (!devices.note.empty()) options_.reporter.Info(devices.note);
  ASSIGN_OR_RETURN(shape_,
                   ResolveBatchPlan(options_.training,
                                    static_cast<int64_t>(devices.names.size()),
                                    static_cast<int64_t>(tasks_.size())));
  TowerSetup setup;
  setup.devices = devices.names;
  ASSIGN_OR_RETURN(setup.layers, PlaceLayers(options_.training.model(), choice,
                                             options_.reporter));
  setup.shape = shape_;
  setup.backend = MakeBackendOptions(options_.training, choice.gpu,
                                     options_.compute_threads);
  setup.backend.device_memory_limit_bytes = choice.memory_limit_bytes;
  setup.reporter = options_.reporter;
  ASSIGN_OR_RETURN(opened_, OpenTowers(options_.training, setup));
  RETURN_IF_ERROR(OpenTestDevices(setup));
  towers_ = JoinTowers(options_.training, opened_);
  SayTowers();
  if (options_.log_device_placement) SayDevicePlacement();
  return absl::OkStatus();
}

// In host memory a tower has a part of the threads, and an evaluation all; a
// device of its own is open, and its memory counted, once.
absl::Status WorkerTask::OpenTestDevices(const TowerSetup& setup) {
  const ReplicaDevices& first = opened_.towers.front().devices;
  if (!is_chief() || shape_.towers == 1 || first.own()->streams() != nullptr) {
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(test_devices_, OpenReplica(first.names.front(), setup.layers,
                                              setup.backend));
  return absl::OkStatus();
}

absl::Status WorkerTask::CreateModel() {
  const TrainingSpec& training = options_.training;
  ASSIGN_OR_RETURN(placed_, PlaceModel(training, towers_->model().parameters(),
                                       static_cast<int>(ps_addresses_.size())));
  if (!is_chief()) return absl::OkStatus();
  SayPlacement();
  if (test_set_ == nullptr) return absl::OkStatus();
  const ReplicaDevices& devices = test_devices_.backends.empty()
                                      ? opened_.towers.front().devices
                                      : test_devices_;
  ASSIGN_OR_RETURN(test_model_,
                   CompileTestModel(training, devices, MemoryBytes(opened_)));
  return absl::OkStatus();
}

absl::Status WorkerTask::CreateData() {
  const TrainingSpec& training = options_.training;
  ASSIGN_OR_RETURN(const RunSchema of_run, FindSchema());
  const std::shared_ptr<const DataSchema>& run = of_run.schema;
  ASSIGN_OR_RETURN(DataSchema half, OpenTrainingHalf(run));
  const bool is_new = is_chief() && !of_run.has_checkpoint;
  // Others are told by ps task 0 where their data are not the chief's.
  if (is_new && data_set_ != nullptr) {
    RETURN_IF_ERROR(CheckOutputs(
        training, *data_set_, towers_->model().num_outputs(), RunKind::kNew));
  }
  if (training.input().on_bad_record() == SKIP) {
    bad_records_ = std::make_unique<BadRecords>(options_.reporter);
  }
  const auto seed = static_cast<uint64_t>(training.seed());
  DataSchema now = CompleteSchema(training.input(), seed, std::move(half),
                                  /*test_half=*/nullptr);
  if (is_chief()) {
    RETURN_IF_ERROR(OpenTestHalf(
        run != nullptr ? run : std::make_shared<const DataSchema>(now)));
  }
  if (test_set_ != nullptr) {
    const DataSchema test_half = test_set_->Schema();
    now = CompleteSchema(training.input(), seed, std::move(now), &test_half);
  }
  if (is_new) WarnOfOtherSource(now);
  ASSIGN_OR_RETURN(schema_,
                   SettleSchema(run.get(), std::move(now),
                                is_chief() ? options_.reporter : Reporter()));
  return absl::OkStatus();
}

void WorkerTask::WarnOfOtherSource(const DataSchema& now) const {
  if (options_.init.path.empty()) return;
  const absl::StatusOr<RunSchema> source = FindRunSchema(
      RunFolder(/*train_dir=*/"", options_.init.path), Reporter());
  if (!source.ok() || source->schema == nullptr) return;
  const bool leaves_out = absl::c_any_of(
      options_.init.name_map,
      [](const std::string& rule) { return absl::EndsWith(rule, "="); });
  for (const std::string& line :
       DescribeOtherSource(*source->schema, now, leaves_out)) {
    options_.reporter.Warning(line);
  }
}

absl::Status WorkerTask::OpenTestHalf(std::shared_ptr<const DataSchema> run) {
  const TrainingSpec& training = options_.training;
  RETURN_IF_ERROR(CheckEvaluation(training, towers_->model()));
  ASSIGN_OR_RETURN(const bool has_test_half, HasTestHalf(training.input()));
  if (!has_test_half) {
    options_.reporter.Info(DescribeNoEvaluation(training));
    return CheckNoEvaluation(training);
  }
  ASSIGN_OR_RETURN(test_set_,
                   OpenDataSet(training, towers_->model(), Split::kTest,
                               std::move(run), ProgressOutputOf(options_)));
  SayRemarks("test data", test_set_->Remarks(), options_.reporter);
  return absl::OkStatus();
}

absl::StatusOr<RunSchema> WorkerTask::FindSchema() const {
  ASSIGN_OR_RETURN(RunSchema run,
                   FindRunSchema(options_.train_dir,
                                 is_chief() ? options_.reporter : Reporter()));
  if (is_chief() && !options_.train_dir.empty()) {
    RETURN_IF_ERROR(CheckCanKeepTraining(options_.train_dir));
  }
  // Without a checkpoint a training begins anew.
  if (!run.has_checkpoint) run.schema = nullptr;
  if (run.schema != nullptr) {
    RETURN_IF_ERROR(CheckRunTraining(*run.schema, options_.training));
  }
  return run;
}

absl::StatusOr<DataSchema> WorkerTask::OpenTrainingHalf(
    const std::shared_ptr<const DataSchema>& run) {
  const TrainingSpec& training = options_.training;
  if (training.input().stream()) {
    ASSIGN_OR_RETURN(open_stream_,
                     OpenTrainingStream(training, towers_->model(), run));
    ASSIGN_OR_RETURN(const std::unique_ptr<ExampleStream> stream,
                     open_stream_());
    SayData(stream->Files(), stream->Remarks());
    return stream->Schema();
  }
  ASSIGN_OR_RETURN(data_set_,
                   OpenDataSet(training, towers_->model(), Split::kTrain, run,
                               ProgressOutputOf(options_)));
  SayData(data_set_->Files(), data_set_->Remarks());
  return data_set_->Schema();
}

int64_t WorkerTask::num_examples() const {
  return data_set_ == nullptr ? 0 : data_set_->num_examples();
}

void WorkerTask::SayData(const std::vector<std::string>& files,
                         const std::vector<std::string>& remarks) const {
  std::string line = "training data: ";
  if (data_set_ == nullptr) {
    absl::StrAppend(&line, "a stream of rows");
  } else {
    absl::StrAppend(&line, data_set_->num_examples(), " rows");
    if (data_set_->num_targets() > 0) {
      absl::StrAppend(&line, " with ", data_set_->num_targets(), " targets");
    } else {
      absl::StrAppend(&line, " in ", data_set_->num_classes(), " classes");
    }
  }
  if (!files.empty()) {
    absl::StrAppend(&line, ", ", files.size(), " files in ",
                    options_.training.input().dir());
  }
  options_.reporter.Info(line);
  SayRemarks("training data", remarks, options_.reporter);
}

int64_t WorkerTask::EpochUpdates() const {
  const int64_t rows = shape_.global_rows();
  return num_examples() / rows * rows /
         UpdateRows(options_.training.replication(), shape_);
}

absl::Status WorkerTask::FitOptimizer() {
  TrainingSpec* const training = &options_.training;
  RETURN_IF_ERROR(CheckEpochs(training->stop(), num_examples()));
  RETURN_IF_ERROR(FitScheduleToTraining(training->stop(), EpochUpdates(),
                                        training->mutable_optimizer()));
  ASSIGN_OR_RETURN(const std::string scaling, ScaleOptimizer(shape_, training));
  if (is_chief() && !scaling.empty()) options_.reporter.Info(scaling);
  const std::string end =
      DescribeStop(training->stop(), EpochUpdates(), options_.stop_source);
  if (is_chief()) options_.reporter.Info(end);
  ASSIGN_OR_RETURN(update_rule_, CreateUpdateRule(training->optimizer()));
  return absl::OkStatus();
}

absl::Status WorkerTask::CreateClient(
    std::vector<std::unique_ptr<ParameterLink>> links) {
  ParameterClient::Options options;
  options.sender = SenderOf(options_);
  for (size_t i = 0; i < links.size(); ++i) {
    options.ps_names.push_back(TaskName(MakeTaskId(kPsJob, i)));
  }
  options.own_shard =
      options_.cluster.ShardOf(options_.self).value_or(kNoShard);
  options.transfer.seed = options_.incarnation;
  ASSIGN_OR_RETURN(options.codec,
                   FindCodec(options_.training.gradient().codec()));
  options.error_feedback = options_.training.gradient().error_feedback();
  ASSIGN_OR_RETURN(options.pull_codec,
                   FindCodec(options_.training.pull().codec()));
  options.clock = options_.clock;
  options.reporter = options_.reporter;
  client_ = std::make_unique<ParameterClient>(options, std::move(links));
  return client_->SetModel(placed_.tensors, placed_.placement);
}

int WorkerTask::WorkerIndex() const {
  const auto it = std::find(tasks_.begin(), tasks_.end(), options_.self);
  return static_cast<int>(it - tasks_.begin());
}

absl::Status WorkerTask::PlaceParameterUpdates() {
  UpdateSite site;
  site.is_standalone = options_.cluster.empty();
  site.shape = shape_;
  ASSIGN_OR_RETURN(update_,
                   PlaceUpdates(options_.training, site, opened_.towers.front(),
                                update_rule_.get(), options_.reporter));
  return absl::OkStatus();
}

absl::Status WorkerTask::CreateLoop() {
  const InputSpec& input = options_.training.input();
  TrainLoop::Options options;
  options.towers = towers_.get();
  options.data_set = data_set_.get();
  options.open_stream = open_stream_;
  options.clock = options_.clock;
  options.input.seed = static_cast<uint64_t>(options_.training.seed());
  options.input.shuffle = input.shuffle();
  options.input.shuffle_buffer = input.shuffle_buffer();
  options.input.batch_size = shape_.batch_size;
  options.input.worker_index = WorkerIndex();
  options.input.num_workers = static_cast<int64_t>(tasks_.size());
  options.input.prefetch = input.prefetch();
  options.input.clock = options_.clock;
  options.input.bad_records = bad_records_.get();
  options.input.threads = InputThreads(input, options_.compute_threads);
  ASSIGN_OR_RETURN(
      const GradientClipper clipper,
      GradientClipper::Create(options_.training.gradient().clip()));
  if (clipper.clips()) {
    options.change_gradients = [clipper](auto gradients) {
      clipper.Clip(gradients);
    };
  }
  options.profiled = options_.profiled;
  CreateExchange(/*changes_gradients=*/clipper.clips());
  options.exchange = exchange_.get();
  ASSIGN_OR_RETURN(loop_, TrainLoop::Create(options));
  return absl::OkStatus();
}

void WorkerTask::CreateExchange(bool changes_gradients) {
  const TrainingSpec& training = options_.training;
  ExchangeOptions options;
  options.client = client_.get();
  options.towers = towers_.get();
  options.clock = options_.clock;
  options.update = update_;
  options.replication = training.replication();
  // A device copies from the worker's own memory faster, and a codec changes
  // values.
  options.reads_rounds_in_place =
      opened_.towers.front().devices.own()->streams() == nullptr &&
      training.pull().codec().empty();
  // In one process the shard would take the cores that still compute.
  options.may_push_early = !options_.cluster.empty() && !changes_gradients;
  options.hooks_read_parameters =
      training.log_tensors().every_steps() > 0 ||
      training.summary().histograms_every_steps() > 0;
  options.allow_non_finite = training.non_finite().allow();
  options.reporter = options_.reporter;
  exchange_ = MakeStepExchange(options);
}

absl::Status WorkerTask::CreateChiefParts() {
  ChiefParts::Worker worker;
  worker.options = &options_;
  worker.tasks = tasks_;
  worker.shape = shape_;
  worker.update_rule = update_rule_.get();
  worker.placed = &placed_;
  worker.client = client_.get();
  worker.coordination = coordination_.get();
  worker.model = &towers_->model();
  worker.num_examples = num_examples();
  if (data_set_ == nullptr) worker.row_order = RowOrder::kStream;
  worker.schema = schema_;
  worker.test_model = test_model_.get();
  worker.test_set = test_set_.get();
  worker.bad_records = bad_records_.get();
  // While parts are made there is no session, and a signal ends the process.
  worker.go_on = [this] { return session_ == nullptr || session_->goes_on(); };
  ASSIGN_OR_RETURN(chief_, ChiefParts::Create(worker));
  return absl::OkStatus();
}

absl::StatusOr<SummaryParts> WorkerTask::MakeSummaryParts() {
  if (!is_chief() || options_.train_dir.empty() ||
      !HasSummaries(options_.training)) {
    return SummaryParts();
  }
  summaries_ =
      MakeSummaryWriter(chief_->file_system(), options_.clock,
                        options_.train_dir, kChiefJob, options_.reporter);
  SummaryParts parts;
  parts.writer = summaries_.get();
  if (!towers_->model().counts_correct()) {
    parts.accuracy_curve = AccuracyCurve::kNone;
  }
  parts.clock = options_.clock;
  parts.ask_job_state = [this](ReplyCallback<JobState> done) {
    WatchRequest request;
    *request.mutable_sender() = SenderOf(options_);
    // None has this number: it is answered at once.
    request.set_state_version(-1);
    coordination_->Call(kWatchCall, request,
                        options_.clock->Now() + kStateTimeout, std::move(done));
  };
  ShownTraining shown;
  shown.training = &options_.training;
  shown.training_set = data_set_.get();
  shown.batch_size = shape_.batch_size;
  for (const TowerParts& tower : opened_.towers) {
    shown.devices.push_back(tower.devices.names.front());
  }
  shown.epoch_updates = EpochUpdates();
  RETURN_IF_ERROR(AddShownParts(shown, &parts));
  parts.reporter = options_.reporter;
  return parts;
}

absl::StatusOr<Profiler::Options> WorkerTask::ProfileOptions() const {
  Profiler::Options profile;
  profile.steps = options_.profiled;
  if (profile.steps.count > 0 && options_.train_dir.empty()) {
    return absl::InvalidArgumentError(
        "--profile_steps wants a --train_dir to write the profile to");
  }
  profile.process_id = WorkerIndex();
  for (const TensorDef& tensor : placed_.tensors) {
    profile.tensor_names.push_back(tensor.name());
  }
  profile.path =
      absl::StrCat(options_.train_dir, "/profile-", options_.self.job(), "-",
                   options_.self.index(), ".json");
  return profile;
}

absl::Status WorkerTask::CreateHooks() {
  SessionHooks::Options options;
  options.task_name = TaskName(options_.self);
  options.chief = is_chief();
  options.saves = !options_.train_dir.empty();
  options.training = options_.training;
  options.steps_per_epoch = EpochUpdates();
  options.progress.every = options_.progress_every;
  if (bad_records_ != nullptr) {
    options.progress.bad_records = [this] { return bad_records_->count(); };
  }
  ASSIGN_OR_RETURN(options.profile, ProfileOptions());
  options.kept_training.train_dir = options_.train_dir;
  options.kept_training.training = given_training_;
  MakeDirAbsolute(options.kept_training.training.mutable_input());
  options.kept_training.schema = schema_;
  SessionHooks::Parts parts;
  parts.write_file = [this](const std::string& path,
                            const std::string& content) {
    return WriteFile(path, content);
  };
  if (is_chief()) parts.write_watch = chief_->write_watch();
  parts.progress_output = ProgressOutputOf(options_);
  parts.reporter = options_.reporter;
  parts.trained = [this](absl::Time now) {
    return chief_->saver()->Trained(now);
  };
  parts.begin_save = [this] { return chief_->BeginSave(); };
  parts.after_last_save = [this](const std::string& folder,
                                 const EndRecord& end) {
    MarkFinished(folder, end);
  };
  if (test_set_ != nullptr) {
    parts.evaluate = [this] {
      return chief_->evaluator()->Evaluate(
          [this] { return session_->MayGoOn(); });
    };
  }
  parts.stop_job = [this](absl::string_view reason,
                          const absl::Status& failure) {
    session_->StopJob(reason, failure);
  };
  ASSIGN_OR_RETURN(parts.summaries, MakeSummaryParts());
  ASSIGN_OR_RETURN(hooks_, SessionHooks::Create(options, parts));
  return absl::OkStatus();
}

TrainingSession::Options WorkerTask::SessionOptions() const {
  TrainingSession::Options options;
  options.machine.self = options_.self;
  options.machine.chief = is_chief();
  options.machine.chief_task = chief_task_;
  options.machine.ps_addresses = ps_addresses_;
  options.machine.own_ps = options_.cluster.ShardOf(options_.self).value_or(-1);
  options.machine.model_fingerprint = placed_.definition.fingerprint;
  options.machine.max_wait = options_.max_wait;
  if (!options_.training.replication().has_async()) {
    options.machine.step_wait = kStepWait;
  }
  options.machine.saves = !options_.train_dir.empty();
  if (is_chief()) {
    options.machine.saved_step =
        NewestSavedStep(chief_->file_system(), options_.train_dir);
  }
  options.sender = SenderOf(options_);
  options.machine.asks_before_takeover = !options_.job_namespace.empty();
  if (!options_.cluster.empty()) {
    const auto own = options_.cluster.AddressOf(options_.self);
    if (own.ok()) options.sender_address = *own;
    for (size_t i = 0; i < ps_addresses_.size(); ++i) {
      options.ps_addresses[static_cast<int>(i)] = ps_addresses_[i];
    }
  }
  options.training_text = TrainingText();
  options.training_fingerprint = Fingerprint64(options.training_text);
  // The chief alone opens the test half.
  options.data = MakeDataSections(schema_, static_cast<int64_t>(tasks_.size()));
  options.stop = options_.training.stop();
  options.replication = options_.training.replication();
  options.saves = is_chief() && !options_.train_dir.empty();
  options.checkpoint = options_.training.checkpoint();
  options.batch_size = shape_.worker_rows();
  options.epoch_examples = loop_->steps_per_epoch() * options.batch_size *
                           static_cast<int64_t>(tasks_.size());
  options.machine.goal = {options.stop, options.epoch_examples,
                          UpdateRows(options.replication, shape_)};
  options.machine.finished = FinishedBefore(options.machine.goal);
  return options;
}

std::string WorkerTask::FinishedBefore(const JobGoal& goal) const {
  PosixFileSystem file_system;
  const std::optional<FinishedRun> run = FindFinishedRun(
      &file_system, {options_.train_dir, SemanticFingerprint(given_training_),
                     options_.job_namespace, goal});
  if (!run.has_value()) return "";
  return absl::StrCat("step ", run->global_step(), ", by stop.",
                      run->stop_reason(), ", as ", options_.train_dir, " says");
}

void WorkerTask::CreateSession() {
  const TrainingSession::Options session = SessionOptions();
  finished_before_ = session.machine.finished;
  const bool reads = is_chief() && options_.read_from.space.has_value() &&
                     session.machine.saved_step < 0;
  TrainingSession::Parts parts;
  parts.clock = options_.clock;
  parts.hello = [this, reads](int ps_task, const HelloRequest& request,
                              ReplyCallback<HelloReply> done) {
    if (!reads) return client_->Hello(ps_task, request, std::move(done));
    HelloToReader(options_.read_from, client_.get(), ps_task, request,
                  std::move(done));
  };
  parts.coordination = coordination_.get();
  parts.steps = loop_.get();
  parts.source = is_chief() ? chief_->loader() : nullptr;
  parts.hooks = hooks_->in_order();
  parts.reporter = options_.reporter;
  parts.on_enter = [this](const EnterEpoch& epoch) {
    if (chief_ == nullptr) return;
    chief_->saver()->Enter(epoch.model_epoch, chief_->loader()->Enter());
  };
  parts.save_now = [this](std::function<void(const absl::Status&)> done) {
    hooks_->SaveNow(std::move(done));
  };
  parts.wait_for_saves = [this] { hooks_->WaitForSaves(); };
  parts.set_serving = [this](bool serving) {
    if (health_ != nullptr) health_->SetServing(serving);
  };
  parts.write_result = [this](const EndRecord& end) {
    return WriteResult(end);
  };
  parts.traffic = [this] { return MeasuredTraffic(); };
  session_ = std::make_unique<TrainingSession>(session, std::move(parts));
}

// The text that all workers must have alike: the training, and how many towers,
// or two of them would see the same example.
std::string WorkerTask::TrainingText() const {
  std::string text = SemanticText(options_.training);
  if (options_.cluster.is_all_reduce()) text += "replication: all_reduce\n";
  if (shape_.towers > 1) {
    absl::StrAppend(&text, "towers: ", shape_.towers, " (--devices)");
  }
  return text;
}

std::vector<std::string> WorkerTask::TowerDevices() const {
  std::vector<std::string> devices;
  for (const TowerParts& tower : opened_.towers) {
    devices.push_back(tower.devices.Title());
  }
  return devices;
}

void WorkerTask::SayTowers() const {
  const std::vector<std::string> devices = TowerDevices();
  const CompiledModel& first = *opened_.towers.front().model;
  if (first.has_pipeline()) options_.reporter.Info(first.pipeline_title());
  if (shape_.towers == 1) {
    if (opened_.towers.front().devices.names.size() == 1) return;
    return options_.reporter.Info(
        absl::StrCat("layers are computed on ", devices.front()));
  }
  const std::string& controller = options_.training.tower().controller_device();
  options_.reporter.Info(
      absl::StrCat(shape_.towers, " towers on ", absl::StrJoin(devices, ", "),
                   ", each with batches of ", shape_.batch_size,
                   " rows; gradients are averaged ",
                   opened_.mean != nullptr ? "by the devices, for " : "on ",
                   controller.empty() ? devices.front() : controller));
}

void WorkerTask::SayDevicePlacement() const {
  for (const TowerParts& tower : opened_.towers) {
    SayLines(tower.model->DescribePlan(tower.devices.names));
  }
}

void WorkerTask::SayPlacement() const {
  SayLines(PlacementTable(placed_.tensors, placed_.placement,
                          static_cast<int>(ps_addresses_.size())));
}

void WorkerTask::SayLines(absl::string_view text) const {
  for (const absl::string_view line :
       absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    options_.reporter.Info(line);
  }
}

TrainingResult WorkerTask::DescribeRun() const {
  const TrainingSpec& training = options_.training;
  TrainingResult result;
  result.model = training.model().name();
  result.job_namespace = options_.job_namespace;
  result.mode = options_.cluster.empty() ? "standalone" : "cluster";
  result.replication = options_.cluster.is_all_reduce()
                           ? kAllReduceName
                           : ReplicationName(training.replication());
  result.replication_settings = ReplicationNumbers(training.replication());
  result.optimizer = training.optimizer().name();
  result.device = std::string(opened_.towers.front().devices.own()->name());
  result.devices = TowerDevices();
  result.num_ps =
      options_.cluster.is_all_reduce() ? 0 : options_.cluster.num_ps();
  result.num_workers = static_cast<int>(tasks_.size());
  result.compute_threads = options_.compute_threads;
  result.seed = training.seed();
  result.batch_size = shape_.batch_size;
  result.accumulate_batches = shape_.accumulate_batches;
  result.rows_per_push = shape_.worker_rows();
  result.codec = training.gradient().codec();
  result.error_feedback = training.gradient().error_feedback();
  const ExchangedBytes bytes = exchange_->bytes();
  result.gradient_bytes_sent = bytes.sent;
  result.gradient_bytes_float32 = bytes.sent_float32;
  result.pull_codec = training.pull().codec();
  result.pull_bytes_received = bytes.received;
  result.pull_bytes_float32 = bytes.received_float32;
  for (const TensorDef& tensor : placed_.tensors) {
    result.model_bytes += NumElements(tensor.shape()) *
                          static_cast<int64_t>(SizeOf(tensor.dtype()));
  }
  result.muster_version = std::string(kMusterVersion);
  return result;
}

// With what this worker will say in its Finish.
JobState WorkerTask::StateAtEnd() const {
  JobState state = session_->job_state();
  const Traffic traffic = MeasuredTraffic();
  for (WorkerState& worker : *state.mutable_workers()) {
    if (traffic.pushes() == 0 || worker.sender().task() != options_.self) {
      continue;
    }
    *worker.mutable_traffic() = traffic;
  }
  return state;
}

Traffic WorkerTask::MeasuredTraffic() const {
  Traffic traffic;
  if (!options_.cluster.is_all_reduce()) return traffic;
  const ExchangedBytes bytes = exchange_->bytes();
  traffic.set_pushes(bytes.pushes);
  traffic.set_bytes_sent(bytes.sent_to_others);
  traffic.set_bytes_received(bytes.received_from_others);
  return traffic;
}

void WorkerTask::MarkFinished(const std::string& folder,
                              const EndRecord& end) const {
  if (!end.completed || !IsStopCondition(end.stop_reason)) return;
  FinishedRun run;
  run.set_training_fingerprint(SemanticFingerprint(given_training_));
  run.set_namespace_(options_.job_namespace);
  run.set_global_step(end.global_step);
  run.set_stop_reason(end.stop_reason);
  *run.mutable_stop() = session_->job_state().stop();
  const absl::Status written =
      WriteFile(FinishedRunPath(folder), FinishedRunText(run));
  if (written.ok()) return;
  options_.reporter.Warning(absl::StrCat(
      "how the run has ended is not kept beside its last checkpoint: ",
      written.message()));
}

absl::Status WorkerTask::WriteResult(const EndRecord& end) const {
  const std::optional<EvaluationResult> evaluated = hooks_->evaluated();
  // The evaluation at the end has failed, or there is none.
  const bool failed = test_set_ != nullptr && !evaluated.has_value();
  if (options_.train_dir.empty() || failed) return absl::OkStatus();
  RETURN_IF_ERROR(chief_->CheckHeld());
  TrainingResult result = DescribeRun();
  result.evaluation = evaluated;
  result.final_loss = session_->last_loss();
  result.global_step = end.global_step;
  result.start_step = session_->first_global_step();
  result.stop_reason = end.stop_reason;
  result.checkpoint = hooks_->newest_checkpoint();
  RunTimes times;
  times.start = options_.start_time;
  times.entered = session_->entered_time();
  times.first_examples = session_->first_examples();
  times.first_step = session_->first_step_time();
  times.stopped = session_->stopped_time();
  times.end = options_.clock->Now();
  AddSpeed(StateAtEnd(), times, &result);
  const std::string path = absl::StrCat(options_.train_dir, "/result.json");
  if (!finished_before_.empty() && result.start_step == result.global_step) {
    // A start without a step has no loss and no rates, but the file has.
    const absl::StatusOr<std::string> old = ReadFile(path);
    if (old.ok() &&
        (!evaluated.has_value() || HasEvaluation(*old, *evaluated))) {
      options_.reporter.Info(absl::StrCat(path, " stays as it is"));
      return absl::OkStatus();
    }
  }
  RETURN_IF_ERROR(OfFile(WriteFile(path, ResultJson(result))));
  options_.reporter.Info(absl::StrCat("wrote ", path));
  return absl::OkStatus();
}

absl::Status WorkerTask::WriteFile(const std::string& path,
                                   const std::string& content) const {
  const auto write = [&] { return WriteFileAtomically(path, content); };
  if (!is_chief()) return write();
  return chief_->write_watch()->Watch(absl::StrCat("write of ", path), write);
}

int WorkerTask::Run() {
  const int exit_code = session_->Run();
  // In all-reduce the ps task of this process waits for the same end.
  if (session_->left_without_ps() && options_.latch != nullptr) {
    options_.latch->Stop({exit_code, "the job is over, and the others left"});
  }
  return exit_code;
}

void WorkerTask::RequestStop(int signal) {
  session_->RequestStop(signal);
  loop_->StopReading();
}

}  // namespace muster
