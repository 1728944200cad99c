#ifndef WORKER_TASK_CHIEF_PARTS_H_
#define WORKER_TASK_CHIEF_PARTS_H_

#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/checkpoint/file_system.h"
#include "common/checkpoint/train_dir_lock.h"
#include "common/checkpoint/write_watch.h"
#include "common/cluster/task_id.h"
#include "common/optimizer/update_rule.h"
#include "common/rpc/link.h"
#include "proto/data_schema.pb.h"
#include "worker/checkpoint/initial_weights.h"
#include "worker/checkpoint/model_loader.h"
#include "worker/checkpoint/model_saver.h"
#include "worker/client/parameter_client.h"
#include "worker/executor/compiled_model.h"
#include "worker/input/bad_records.h"
#include "worker/input/data_set/data_set.h"
#include "worker/input/row_position.h"
#include "worker/session/round_pauser.h"
#include "worker/task/evaluator.h"
#include "worker/task/worker_options.h"
#include "worker/tower/batch_plan.h"
#include "worker/training/placed_model.h"

namespace muster {

// The parts that only a chief has: the train_dir, locked, and what loads, saves
// and evaluates the model. Each part says which threads may use it.
class ChiefParts {
 public:
  // The worker's other parts; all outlive these.
  struct Worker {
    const WorkerOptions* options = nullptr;
    std::vector<TaskId> tasks;
    BatchPlan shape;
    const UpdateRule* update_rule = nullptr;
    const PlacedModel* placed = nullptr;
    ParameterClient* client = nullptr;
    Link* coordination = nullptr;
    CompiledModel* model = nullptr;
    // The training half's; a stream has no number of them.
    int64_t num_examples = 0;
    RowOrder row_order = RowOrder::kPermutation;
    DataSchema schema;
    // Null where there is no half to evaluate.
    CompiledModel* test_model = nullptr;
    // Null without such a half.
    const DataSet* validation_set = nullptr;
    const DataSet* test_set = nullptr;
    // Null: a bad record is an error.
    BadRecords* bad_records = nullptr;
    // Restoring goes on; asked from then on.
    std::function<bool()> go_on;
  };

  // Errors: those of TrainDirLock::Acquire, CleanTrainDir, ProbeTrainDir and
  // InitialWeights::OpenForRun.
  static absl::StatusOr<std::unique_ptr<ChiefParts>> Create(
      const Worker& worker);

  // Watches what the chief writes.
  WriteWatch* write_watch() { return write_watch_.get(); }
  FileSystem* file_system() { return file_system_.get(); }
  ModelLoader* loader() { return loader_.get(); }
  // As ModelSaver::Begin, if the train_dir is still this process's.
  absl::StatusOr<PendingSave> BeginSave();
  // Errors: TrainDirLock::CheckHeld's, of a file.
  absl::Status CheckHeld() const;
  ModelSaver* saver() { return saver_.get(); }
  // Evaluates the validation half, or without one the test half; null without
  // either.
  Evaluator* evaluator() { return evaluator_.get(); }
  // Evaluates the test half beside a validation half; null but then.
  Evaluator* evaluator_at_end() { return evaluator_at_end_.get(); }

 private:
  explicit ChiefParts(const Worker& worker) : worker_(worker) {}

  void CreateWriteWatch();
  absl::Status OpenTrainDir();
  absl::Status CreateLoader();
  void CreateSaver();
  void CreateEvaluators();

  const Worker worker_;
  std::unique_ptr<WriteWatch> write_watch_;
  std::unique_ptr<FileSystem> file_system_;
  // The same for what is restored: a stop ends it, and no save.
  std::unique_ptr<FileSystem> restored_files_;
  std::unique_ptr<TrainDirLock> lock_;
  std::unique_ptr<InitialWeights> weights_;
  std::unique_ptr<ModelLoader> loader_;
  // Null but in synchronous replication.
  std::unique_ptr<RoundPauser> rounds_;
  std::unique_ptr<ModelSaver> saver_;
  std::unique_ptr<Evaluator> evaluator_;
  std::unique_ptr<Evaluator> evaluator_at_end_;
};

}  // namespace muster

#endif  // WORKER_TASK_CHIEF_PARTS_H_
