#include "worker/task/worker_session.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "common/base/fingerprint.h"
#include "worker/checkpoint/model_saver.h"
#include "worker/checkpoint/namespace_weights.h"
#include "worker/input/data_set/data_sections.h"
#include "worker/task/worker_options.h"

namespace muster {
namespace {

// How long the question for a step waits at ps 0 for other workers: as long as
// it takes until the operator is told whom.
constexpr absl::Duration kStepWait = absl::Seconds(1);

SessionMachine::Options MachineOptions(const SessionStages& stages) {
  const PlacedTraining& placed = stages.steps->placed();
  const WorkerJob& job = placed.job();
  const WorkerOptions& task = job.options;
  SessionMachine::Options machine;
  machine.self = task.self;
  machine.chief = job.is_chief();
  machine.chief_task = job.chief_task;
  machine.takes_any_worker = task.cluster.takes_any_worker();
  machine.listed_workers =
      static_cast<int>(task.cluster.training_tasks().size());
  machine.ps_addresses = job.ps_addresses;
  machine.own_ps = task.cluster.ShardOf(task.self).value_or(-1);
  machine.model_fingerprint = placed.model().definition.fingerprint;
  machine.max_wait = task.max_wait;
  if (!task.training.replication().has_async()) machine.step_wait = kStepWait;
  machine.saves = !task.train_dir.empty();
  if (stages.chief != nullptr) {
    machine.saved_step =
        NewestSavedStep(stages.chief->file_system(), task.train_dir);
  }
  machine.asks_before_takeover =
      !task.job_namespace.empty() || task.is_numbered;
  machine.goal = stages.steps->goal();
  machine.finished = stages.files->finished_before();
  return machine;
}

TrainingSession::Options SessionOptions(const SessionStages& stages) {
  const StepStage& steps = *stages.steps;
  const WorkerJob& job = steps.placed().job();
  const WorkerOptions& task = job.options;
  TrainingSession::Options options;
  options.machine = MachineOptions(stages);
  options.sender = SenderOf(task);
  options.is_numbered = task.is_numbered;
  if (!task.cluster.empty()) {
    const auto own = task.cluster.AddressOf(task.self);
    if (own.ok()) options.sender_address = *own;
    for (size_t i = 0; i < job.ps_addresses.size(); ++i) {
      options.ps_addresses[static_cast<int>(i)] = job.ps_addresses[i];
    }
  }
  options.training_text = steps.traits().training_text;
  options.training_fingerprint = Fingerprint64(options.training_text);
  // The chief alone opens the test half.
  options.data = MakeDataSections(steps.traits().schema,
                                  static_cast<int64_t>(job.tasks.size()));
  options.stop = task.training.stop();
  options.replication = task.training.replication();
  options.saves = job.is_chief() && !task.train_dir.empty();
  options.checkpoint = task.training.checkpoint();
  options.step_rows = steps.traits().shape.worker_rows();
  options.skips_bad_records = task.training.input().on_bad_record() == SKIP;
  options.leases_ahead = steps.traits().leases_ahead;
  options.epoch_examples = options.machine.goal.epoch_examples;
  return options;
}

// A chief without a checkpoint of its own says Hello for the namespace that
// its training begins from, too, if there is one.
std::function<void(int, const HelloRequest&, ReplyCallback<HelloReply>)>
HelloOf(const StepStage& steps, bool reads) {
  ParameterClient* const client = steps.client();
  const NamespaceWeights* const read_from = &steps.placed().options().read_from;
  return [client, read_from, reads](int ps_task, const HelloRequest& request,
                                    ReplyCallback<HelloReply> done) {
    if (!reads) return client->Hello(ps_task, request, std::move(done));
    HelloToReader(*read_from, client, ps_task, request, std::move(done));
  };
}

}  // namespace

void MakeWorkerSession(const SessionStages& stages,
                       std::unique_ptr<TrainingSession>* session) {
  const StepStage& steps = *stages.steps;
  const WorkerOptions& task = steps.placed().options();
  const TrainingSession::Options options = SessionOptions(stages);
  const bool reads = stages.chief != nullptr &&
                     task.read_from.space.has_value() &&
                     options.machine.saved_step < 0;
  TrainingSession::Parts parts;
  parts.clock = task.clock;
  parts.hello = HelloOf(steps, reads);
  parts.coordination = steps.coordination();
  parts.steps = steps.runner();
  parts.source = stages.chief == nullptr ? nullptr : stages.chief->loader();
  parts.hooks = stages.hooks->in_order();
  parts.reporter = task.reporter;
  parts.on_enter = [chief = stages.chief](const EnterEpoch& epoch) {
    if (chief == nullptr) return;
    chief->saver()->Enter(epoch.model_epoch, chief->loader()->Enter());
  };
  parts.save_now =
      [hooks = stages.hooks](std::function<void(const absl::Status&)> done) {
        hooks->SaveNow(std::move(done));
      };
  parts.wait_for_saves = [hooks = stages.hooks] { hooks->WaitForSaves(); };
  parts.set_serving = [health = stages.health](bool serving) {
    if (health != nullptr) health->SetServing(serving);
  };
  parts.write_result = [stages, session](const EndRecord& end) {
    return stages.files->WriteResult(
        end, {stages.hooks->evaluated(), stages.hooks->newest_checkpoint()},
        **session);
  };
  if (const auto* const watched = stages.hooks->watched()) {
    parts.evaluations = [watched] { return watched->history(); };
  }
  parts.traffic = [&steps] { return steps.MeasuredTraffic(); };
  *session = std::make_unique<TrainingSession>(options, std::move(parts));
}

}  // namespace muster
