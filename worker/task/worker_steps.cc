#include "worker/task/worker_steps.h"

#include <cstdint>

#include "absl/memory/memory.h"
#include "common/base/status_macros.h"
#include "common/cluster/task_id.h"
#include "common/codec/codec.h"
#include "common/rpc/protocol.h"
#include "worker/client/client_model.h"
#include "worker/input/input_threads.h"
#include "worker/step/make_exchange.h"
#include "worker/task/worker_options.h"
#include "worker/tower/gradient_clipper.h"
#include "worker/training/scale_optimizer.h"
#include "worker/training/update_place.h"

namespace muster {
namespace {

// How this worker reads the rows that are leased to it; the loop fills in the
// rest.
InputPipeline::Options MakeInputOptions(const PlacedTraining& placed,
                                        const WorkerTowers& towers,
                                        const WorkerData& data) {
  const InputSpec& input = placed.training().input();
  InputPipeline::Options options;
  options.seed = static_cast<uint64_t>(placed.training().seed());
  options.shuffle = input.shuffle();
  options.shuffle_buffer = input.shuffle_buffer();
  options.batch_size = towers.shape().batch_size;
  options.prefetch = input.prefetch();
  options.clock = placed.options().clock;
  options.bad_records = data.bad_records();
  options.threads = InputThreads(input, placed.options().compute_threads);
  return options;
}

}  // namespace

absl::StatusOr<std::unique_ptr<WorkerSteps>> WorkerSteps::Create(
    const PlacedTraining* placed, const WorkerTowers* towers,
    const WorkerData* data, WorkerLinks links) {
  auto steps = absl::WrapUnique(new WorkerSteps(*placed, *towers, *data));
  steps->coordination_ = std::move(links.coordination);
  RETURN_IF_ERROR(steps->CreateClient(std::move(links.shards)));
  ASSIGN_OR_RETURN(DeviceUpdate* const update, steps->PlaceParameterUpdates());
  RETURN_IF_ERROR(steps->CreateLoop(update));
  return steps;
}

absl::Status WorkerSteps::CreateClient(
    std::vector<std::unique_ptr<ParameterLink>> links) {
  const WorkerOptions& task = placed_.options();
  ParameterClient::Options options;
  options.sender = SenderOf(task);
  for (size_t i = 0; i < links.size(); ++i) {
    options.ps_names.push_back(TaskName(MakeTaskId(kPsJob, i)));
  }
  options.own_shard = task.cluster.ShardOf(task.self).value_or(kNoShard);
  options.transfer.seed = task.incarnation;
  const GradientSpec& gradient = placed_.training().gradient();
  ASSIGN_OR_RETURN(options.codec, FindCodec(gradient.codec()));
  options.error_feedback = gradient.error_feedback();
  ASSIGN_OR_RETURN(options.pull_codec,
                   FindCodec(placed_.training().pull().codec()));
  options.clock = task.clock;
  options.reporter = task.reporter;
  client_ = std::make_unique<ParameterClient>(options, std::move(links));
  return client_->SetModel(placed_.model().tensors, placed_.model().placement);
}

absl::StatusOr<DeviceUpdate*> WorkerSteps::PlaceParameterUpdates() const {
  UpdateSite site;
  site.is_standalone = placed_.options().cluster.empty();
  site.shape = towers_.shape();
  return PlaceUpdates(placed_.training(), site, towers_.first(),
                      placed_.update_rule(), placed_.options().reporter);
}

absl::Status WorkerSteps::CreateLoop(DeviceUpdate* update) {
  TrainLoop::Options options;
  options.towers = towers_.group();
  options.data_set = data_.training_set();
  options.open_stream = data_.open_stream();
  options.clock = placed_.options().clock;
  options.input = MakeInputOptions(placed_, towers_, data_);
  ASSIGN_OR_RETURN(
      const GradientClipper clipper,
      GradientClipper::Create(placed_.training().gradient().clip()));
  if (clipper.clips()) {
    options.change_gradients = [clipper](auto gradients) {
      clipper.Clip(gradients);
    };
  }
  options.profiled = placed_.options().profiled;
  CreateExchange(update, /*changes_gradients=*/clipper.clips());
  options.exchange = exchange_.get();
  ASSIGN_OR_RETURN(loop_, TrainLoop::Create(options));
  return absl::OkStatus();
}

void WorkerSteps::CreateExchange(DeviceUpdate* update, bool changes_gradients) {
  const TrainingSpec& training = placed_.training();
  ExchangeOptions options;
  options.client = client_.get();
  options.towers = towers_.group();
  options.clock = placed_.options().clock;
  options.update = update;
  options.replication = training.replication();
  // A device copies from the worker's own memory faster, and a codec changes
  // values.
  options.reads_rounds_in_place =
      towers_.first().devices.own()->streams() == nullptr &&
      training.pull().codec().empty();
  // In one process the shard would take the cores that still compute.
  options.may_push_early =
      !placed_.options().cluster.empty() && !changes_gradients;
  options.hooks_read_parameters =
      training.log_tensors().every_steps() > 0 ||
      training.summary().histograms_every_steps() > 0;
  options.allow_non_finite = training.non_finite().allow();
  options.reporter = placed_.options().reporter;
  exchange_ = MakeStepExchange(options);
}

JobGoal WorkerSteps::goal() const {
  const TrainingSpec& training = placed_.training();
  const BatchPlan& shape = towers_.shape();
  return {training.stop(), loop_->epoch_rows(),
          UpdateRows(training.replication(), shape)};
}

Traffic WorkerSteps::MeasuredTraffic() const {
  Traffic traffic;
  if (!placed_.options().cluster.is_all_reduce()) return traffic;
  const ExchangedBytes bytes = exchange_->bytes();
  traffic.set_pushes(bytes.pushes);
  traffic.set_bytes_sent(bytes.sent_to_others);
  traffic.set_bytes_received(bytes.received_from_others);
  return traffic;
}

}  // namespace muster
