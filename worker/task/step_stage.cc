#include "worker/task/step_stage.h"

#include <cstddef>

#include "common/base/status_macros.h"
#include "common/cluster/task_id.h"
#include "common/codec/codec.h"
#include "common/rpc/protocol.h"
#include "worker/client/client_model.h"
#include "worker/task/worker_options.h"
#include "worker/training/scale_optimizer.h"

namespace muster {

absl::Status StepStage::Connect(WorkerLinks links) {
  coordination_ = std::move(links.coordination);
  const WorkerOptions& task = placed_.options();
  ParameterClient::Options options;
  options.sender = SenderOf(task);
  for (size_t i = 0; i < links.shards.size(); ++i) {
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
  client_ = std::make_unique<ParameterClient>(options, std::move(links.shards));
  return client_->SetModel(placed_.model().tensors, placed_.model().placement,
                           placed_.model().tables);
}

JobGoal StepStage::goal() const {
  const TrainingSpec& training = placed_.training();
  return {training.stop(), traits_.num_examples,
          UpdateRows(training.replication(), traits_.shape)};
}

Traffic StepStage::MeasuredTraffic() const {
  Traffic traffic;
  if (!placed_.options().cluster.is_all_reduce()) return traffic;
  const ExchangedBytes bytes = exchange_->bytes();
  traffic.set_pushes(bytes.pushes);
  traffic.set_bytes_sent(bytes.sent_to_others);
  traffic.set_bytes_received(bytes.received_from_others);
  return traffic;
}

}  // namespace muster
