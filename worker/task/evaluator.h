#ifndef WORKER_TASK_EVALUATOR_H_
#define WORKER_TASK_EVALUATOR_H_

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "worker/client/parameter_client.h"
#include "worker/executor/compiled_model.h"
#include "worker/hook/evaluation.h"
#include "worker/input/batch.h"
#include "worker/input/data_set.h"
#include "worker/session/round_pauser.h"

namespace muster {

// Goes through a whole data set in order. One thread.
class Evaluator {
 public:
  // `data_set`, `model` (in evaluate mode), `client` and `rounds` outlive this.
  // `rounds` is null but in synchronous replication, where every shard's values
  // are then those after the newest update.
  Evaluator(const DataSet* data_set, CompiledModel* model,
            ParameterClient* client, RoundPauser* rounds = nullptr);

  // Pulls the parameters, then reads the data set in order.
  absl::StatusOr<EvaluationResult> Evaluate();

 private:
  absl::Status Pull();

  const DataSet* const data_set_;
  CompiledModel* const model_;
  ParameterClient* const client_;
  RoundPauser* const rounds_;
  // The model's parameters.
  std::vector<MutableTensorView> into_;
  Batch batch_;
};

}  // namespace muster

#endif  // WORKER_TASK_EVALUATOR_H_
