#include "tests/simulation/sim_worker.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/base/reporter.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/train_dir.h"
#include "common/cluster/task_id.h"
#include "tests/simulation/sim_links.h"

namespace muster {
namespace {

constexpr char kTrainDir[] = "train";
// Longer than any simulation: whoever waits so long has found a bug.
constexpr absl::Duration kMaxWait = absl::Hours(24);

// ModelLoader, but an initialization with zeros: the model has no layers that
// could make values.
class CountersSource : public ModelSource {
 public:
  // All outlive the source.
  CountersSource(FileSystem* files, const SimModel* model,
                 ParameterClient* client, ModelLoader* loader)
      : files_(files), model_(model), client_(client), loader_(loader) {}

  LoadEvent Load(const LoadModel& epoch) override {
    const absl::StatusOr<std::vector<int64_t>> steps =
        ListCheckpoints(files_, kTrainDir);
    if (!steps.ok()) return LoadEvent{steps.status(), true};
    if (!steps->empty()) return loader_->Load(epoch);
    client_->SetEpoch(epoch.model_epoch, epoch.ps_incarnations);
    TensorValues zeros;
    std::vector<TensorView> views;
    for (const TensorDef& tensor : model_->placed.tensors) {
      zeros.emplace_back(tensor.shape(0), 0.0f);
    }
    for (const std::vector<float>& zero : zeros) {
      views.push_back(ViewOf(absl::MakeConstSpan(zero)));
    }
    const absl::Status loaded =
        client_->chief().LoadModel(model_->placed.definition, views);
    if (!loaded.ok()) return LoadEvent{loaded, false};
    LoadedModel model;
    model.initialized = true;
    return LoadEvent{model, false};
  }
  int64_t SavedEpoch() override { return loader_->SavedEpoch(); }

 private:
  FileSystem* const files_;
  const SimModel* const model_;
  ParameterClient* const client_;
  ModelLoader* const loader_;
};

SimFileSystem::Options FilesOf(const SimWorker::Options& options,
                               const SimProcess* process) {
  SimFileSystem::Options files;
  files.process = process;
  files.disk = options.disk;
  files.oracle = options.oracle;
  files.incarnation = options.incarnation;
  files.mean = options.model->scenario.file_call;
  files.bug = options.bug;
  return files;
}

}  // namespace

SimWorker::SimWorker(const Options& options)
    : options_(options),
      name_(absl::StrCat(options.model->scenario.space, " worker ",
                         options.index)),
      process_(options.simulator),
      caller_(&process_, options.network,
              options.first_endpoint + options.index),
      file_system_(FilesOf(options, &process_)) {
  *sender_.mutable_task() = MakeTaskId(kWorkerJob, options_.index);
  sender_.set_incarnation(options_.incarnation);
  sender_.set_namespace_(options_.model->scenario.space);
}

void SimWorker::Start() {
  options_.simulator->Note("worker starts", options_.index);
  alive_ = true;
  thread_ = process_.StartThread([this] { Main(); });
}

void SimWorker::Die() {
  if (!alive_) return;
  options_.simulator->Note("worker dies", options_.index);
  alive_ = false;
  process_.Continue();
  if (options_.disk->lock_holder == options_.incarnation) {
    options_.disk->lock_holder = 0;
  }
  file_system_.Die();
  caller_.Die();
  // The rest of it goes to its end by itself.
  if (session_ != nullptr) session_->RequestStop(/*signal=*/9);
}

void SimWorker::Terminate(int signal) {
  options_.simulator->Note("worker is terminated", options_.index);
  if (session_ != nullptr) session_->RequestStop(signal);
}

void SimWorker::Main() {
  const int code = Run();
  // Production's order: the process is taken down.
  session_.reset();
  checkpoint_saver_.reset();
  source_.reset();
  loader_.reset();
  model_saver_.reset();
  rounds_.reset();
  steps_.reset();
  client_.reset();
  coordination_.reset();
  if (!alive_) return;
  alive_ = false;
  caller_.Die();
  if (options_.disk->lock_holder == options_.incarnation) {
    options_.disk->lock_holder = 0;
  }
  options_.simulator->Note("worker exits", options_.index, code);
  options_.on_exit(this, code);
}

int SimWorker::Run() {
  if (is_chief() && !TakeLock()) return kExitBadConfig;
  const absl::Status created = Create();
  if (!created.ok()) {
    reporter_.Error(created.ToString());
    return kExitBadConfig;
  }
  if (!alive_) session_->RequestStop(/*signal=*/9);
  return session_->Run();
}

// As TrainDirLock: the kernel frees it when its holder dies.
bool SimWorker::TakeLock() {
  uint64_t& holder = options_.disk->lock_holder;
  if (holder != 0 && options_.bug != Bug::kLockIgnored) {
    reporter_.Error("the train_dir is locked");
    return false;
  }
  holder = options_.incarnation;
  return true;
}

absl::Status SimWorker::Create() {
  const Scenario& scenario = options_.model->scenario;
  std::vector<std::unique_ptr<ParameterLink>> links;
  ParameterClient::Options client;
  client.sender = sender_;
  client.transfer.seed = options_.incarnation;
  client.max_part_bytes = scenario.max_part_bytes;
  client.clock = &process_;
  client.timers = &process_;
  for (int i = 0; i < scenario.num_ps; ++i) {
    client.ps_names.push_back(TaskName(MakeTaskId(kPsJob, i)));
    links.push_back(std::make_unique<SimParameterLink>(
        &caller_, options_.oracle, i, options_.bug));
  }
  client_ = std::make_unique<ParameterClient>(client, std::move(links));
  RETURN_IF_ERROR(client_->SetModel(options_.model->placed.tensors,
                                    options_.model->placed.placement));
  coordination_ = std::make_unique<SimCoordinationLink>(
      &caller_, options_.network, options_.oracle,
      options_.model->scenario.space);
  steps_ = std::make_unique<CountingSteps>(&process_, options_.oracle,
                                           options_.model, client_.get(),
                                           sender_, options_.bug);
  if (is_chief()) RETURN_IF_ERROR(CreateChiefParts());
  session_ =
      std::make_unique<TrainingSession>(SessionOptions(), SessionParts());
  return absl::OkStatus();
}

absl::Status SimWorker::CreateChiefParts() {
  RETURN_IF_ERROR(CleanTrainDir(&file_system_, kTrainDir));
  saved_step_ = NewestSavedStep(&file_system_, kTrainDir);
  ModelLoader::Options load;
  load.file_system = &file_system_;
  load.train_dir = kTrainDir;
  load.client = client_.get();
  load.placed = &options_.model->placed;
  for (int i = 0; i < options_.model->scenario.num_workers; ++i) {
    load.tasks.push_back(MakeTaskId(kWorkerJob, i));
  }
  load.rows = {options_.model->scenario.epoch_rows,
               options_.model->scenario.step_rows};
  load.reporter = reporter_;
  loader_ = std::make_unique<ModelLoader>(load);
  source_ = std::make_unique<CountersSource>(&file_system_, options_.model,
                                             client_.get(), loader_.get());
  ModelSaver::Options save;
  save.clock = &process_;
  save.wall_now = +[] { return absl::UnixEpoch(); };
  save.file_system = &file_system_;
  save.train_dir = kTrainDir;
  save.client = client_.get();
  save.coordination = coordination_.get();
  save.sender = sender_;
  if (options_.model->scenario.mode == Mode::kSync) {
    rounds_ =
        std::make_unique<RoundPauser>(&process_, coordination_.get(), sender_);
  }
  save.rounds = rounds_.get();
  save.pipeline_depth = options_.model->scenario.pipeline_depth;
  save.placed = &options_.model->placed;
  save.rows = load.rows;
  save.slots = options_.model->slots;
  save.retention.keep = options_.model->scenario.keep -
                        (options_.bug == Bug::kKeepsTooFew ? 1 : 0);
  save.reporter = reporter_;
  model_saver_ = std::make_unique<ModelSaver>(save);
  CheckpointSaver::Options saving;
  saving.every_steps = options_.model->scenario.save_every_steps;
  saving.clock = &process_;
  saving.in_rounds = options_.model->scenario.mode == Mode::kSync;
  checkpoint_saver_ = std::make_unique<CheckpointSaver>(
      saving, [this] { return model_saver_->Begin(); }, reporter_);
  return absl::OkStatus();
}

TrainingSession::Options SimWorker::SessionOptions() const {
  const Scenario& scenario = options_.model->scenario;
  TrainingSession::Options options;
  options.machine.self = sender_.task();
  options.machine.chief = is_chief();
  options.machine.chief_task = MakeTaskId(kWorkerJob, 0);
  options.machine.model_fingerprint =
      options_.model->placed.definition.fingerprint;
  options.machine.max_wait = kMaxWait;
  options.machine.asks_before_takeover = !sender_.namespace_().empty();
  StopSpec& stop = options.machine.goal.stop;
  scenario.stop_epochs > 0 ? stop.set_epochs(scenario.stop_epochs)
                           : stop.set_steps(scenario.stop_steps);
  options.machine.goal.epoch_examples = scenario.epoch_rows;
  options.machine.goal.update_examples = scenario.MostRowsLeft();
  options.machine.saves = is_chief();
  options.machine.saved_step = saved_step_;
  options.machine.ps_addresses.assign(scenario.num_ps, "sim");
  options.sender = sender_;
  options.training_fingerprint = 1;
  options.stop = options.machine.goal.stop;
  options.saves = is_chief();
  options.checkpoint.set_every_steps(options_.model->scenario.save_every_steps);
  options.epoch_examples = scenario.epoch_rows;
  options.step_rows = scenario.StepRowsOf(options_.index);
  options.leases_ahead = scenario.leases_ahead;
  options.replication = options_.model->placed.definition.replication;
  return options;
}

TrainingSession::Parts SimWorker::SessionParts() {
  TrainingSession::Parts parts;
  parts.clock = &process_;
  parts.hello = [this](int ps_task, const HelloRequest& request,
                       ReplyCallback<HelloReply> done) {
    client_->Hello(ps_task, request, std::move(done));
  };
  parts.coordination = coordination_.get();
  parts.steps = steps_.get();
  parts.source = source_.get();
  if (checkpoint_saver_ != nullptr) parts.hooks = {checkpoint_saver_.get()};
  parts.save_now = [this](std::function<void(const absl::Status&)> done) {
    checkpoint_saver_->SaveNow(std::move(done));
  };
  parts.wait_for_saves = [this] {
    if (checkpoint_saver_ != nullptr) checkpoint_saver_->WaitForWriter();
  };
  parts.reporter = reporter_;
  parts.on_enter = [this](const EnterEpoch& epoch) {
    if (model_saver_ == nullptr) return;
    model_saver_->Enter(epoch.model_epoch, absl::ZeroDuration());
  };
  parts.set_serving = [](bool) {};
  parts.write_result = [this](const EndRecord&) {
    if (!is_chief()) {
      options_.oracle->Fail(
          absl::StrCat(name_, " is no chief, and ends the job"));
    }
    return absl::OkStatus();
  };
  return parts;
}

void SimWorker::Say(Reporter::Level level, absl::string_view text) {
  if (!alive_) return;
  options_.simulator->NoteText(name_, text);
  said_error_ |= level == Reporter::kError;
  absl::string_view path = text;
  if (level == Reporter::kInfo && absl::ConsumePrefix(&path, "saved ")) {
    options_.oracle->Saved(std::string(path));
  }
}

}  // namespace muster
