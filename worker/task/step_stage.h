#ifndef WORKER_TASK_STEP_STAGE_H_
#define WORKER_TASK_STEP_STAGE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/rpc/link.h"
#include "common/rpc/parameter_link.h"
#include "proto/coordination_service.pb.h"
#include "proto/data_schema.pb.h"
#include "worker/client/link/shard_link.h"
#include "worker/client/parameter_client.h"
#include "worker/executor/compiled_model.h"
#include "worker/input/bad_records.h"
#include "worker/input/data_set/data_set.h"
#include "worker/input/row_position.h"
#include "worker/session/job_goal.h"
#include "worker/session/step_runner.h"
#include "worker/step/step_exchange.h"
#include "worker/task/placed_training.h"
#include "worker/tower/batch_plan.h"

namespace muster {

// What a worker's steps are computed from, and where. All that is pointed to
// outlives the steps.
struct StepTraits {
  BatchPlan shape;
  // Rows of the training half; 0: not known, as a stream's.
  int64_t num_examples = 0;
  RowOrder order = RowOrder::kPermutation;
  // Steps whose rows are leased before the step before them is made.
  int leases_ahead = 1;
  // The text that all workers of a job must have alike.
  std::string training_text;
  // The schema of the run; the chief's has all halves.
  DataSchema schema;
  // Null: the rows are no data set's.
  const DataSet* training_set = nullptr;
  // Null without such a half, and but in the chief.
  const DataSet* validation_set = nullptr;
  const DataSet* test_set = nullptr;
  // Null: a bad record is an error.
  BadRecords* bad_records = nullptr;
  // Null: a program computes.
  const CompiledModel* model = nullptr;
  // The backend, the devices of each tower by title, and its own one.
  std::string backend;
  std::vector<std::string> device_titles;
  std::vector<std::string> own_devices;
  // Where the initial values are from: "seed 7".
  std::string values_source;
};

// A worker that can make steps, as the stages after it see it: with its links,
// and with the client and the exchange of its parameters.
class StepStage {
 public:
  virtual ~StepStage() = default;

  const PlacedTraining& placed() const { return placed_; }
  const StepTraits& traits() const { return traits_; }
  // Whether the worker evaluates a half of its data.
  bool is_evaluated() const {
    return traits_.validation_set != nullptr || traits_.test_set != nullptr;
  }

  Link* coordination() const { return coordination_.get(); }
  ParameterClient* client() const { return client_.get(); }
  ExchangedBytes bytes() const { return exchange_->bytes(); }
  // Nothing but in all-reduce.
  Traffic MeasuredTraffic() const;
  // What the job trains for, with the rows of an epoch and of an update.
  JobGoal goal() const;

  virtual StepRunner* runner() const = 0;
  // Makes the values that a new training begins with; returns where they are,
  // one span a tensor.
  virtual absl::StatusOr<std::vector<absl::Span<float>>> MakeInitialValues()
      const = 0;

 protected:
  // `placed` outlives this.
  StepStage(const PlacedTraining& placed, StepTraits traits)
      : placed_(placed), traits_(std::move(traits)) {}

  // Makes the client. Errors: those of FindCodec and ParameterClient::SetModel.
  absl::Status Connect(WorkerLinks links);
  void set_exchange(std::unique_ptr<StepExchange> exchange) {
    exchange_ = std::move(exchange);
  }
  StepExchange* exchange() const { return exchange_.get(); }

 private:
  const PlacedTraining& placed_;
  const StepTraits traits_;

  std::unique_ptr<Link> coordination_;
  std::unique_ptr<ParameterClient> client_;
  std::unique_ptr<StepExchange> exchange_;
};

}  // namespace muster

#endif  // WORKER_TASK_STEP_STAGE_H_
