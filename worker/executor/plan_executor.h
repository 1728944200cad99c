#ifndef WORKER_EXECUTOR_PLAN_EXECUTOR_H_
#define WORKER_EXECUTOR_PLAN_EXECUTOR_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "common/base/reporter.h"
#include "proto/tensor.pb.h"
#include "worker/backend/device_rule.h"
#include "worker/backend/device_streams.h"
#include "worker/backend/primitive.h"
#include "worker/executor/device_trace.h"
#include "worker/executor/parameter_gate.h"
#include "worker/executor/step_listener.h"
#include "worker/executor/step_schedule.h"
#include "worker/input/batch.h"
#include "worker/model/execution_plan.h"

namespace muster {

class DeviceUpdate;

// Where a model's canonical parameters and gradients lie, in host memory.
struct ParameterPlaces {
  // Each is one piece of memory. The values may be those of another model; the
  // gradients are empty if the model is not for training.
  absl::Span<char> values;
  absl::Span<char> gradients;
  // By parameter, where it lies in both; frozen ones lie behind all others, and
  // in `values` alone.
  std::vector<int64_t> offsets;
  std::vector<int64_t> sizes_bytes;
  // Where steps read each parameter: in `values`, or elsewhere.
  std::vector<const char*> read_from;

  char* value(int parameter) const {
    return values.data() + offsets[parameter];
  }
  char* gradient(int parameter) const {
    return gradients.data() + offsets[parameter];
  }
};

// A compiled model as an executor sees it. What it points to outlives the
// executor.
struct ExecutedModel {
  const ExecutionPlan* plan = nullptr;
  const StepSchedule* schedule = nullptr;
  const ParameterPlaces* parameters = nullptr;
  DataType dtype = FLOAT32;
  // The most rows of a batch.
  int64_t batch_size = 0;
  int64_t example_elements = 0;
  int64_t num_outputs = 0;
  // Whether every batch is whole.
  bool is_training = true;
  // The names of its devices, for messages.
  std::vector<std::string> device_names;
  // By device, null for one that computes in the host's memory.
  std::vector<DeviceStreams*> streams;
  // Hears, after each so long, which device does not go on.
  Reporter reporter;
  absl::Duration stall_period = absl::Seconds(10);
};

// Executes the plan of one model, again and again, on one kind of memory. Owns
// all memory of the plan but that of the parameters and gradients. One thread
// at a time.
class PlanExecutor {
 public:
  struct Step {
    // Has a size that the model takes.
    const Batch& batch;
    uint64_t seed = 0;
    // Null for none.
    StepListener* listener = nullptr;
    ParameterGate* gate = nullptr;
    // The batch that the next Run will probably be with: an executor may bring
    // it to where that computes. It is of a size that the model takes, and is
    // not looked at after this Run.
    SeededBatch next = {};
    // Null: nobody wants one. Else gets what the device does in the step.
    DeviceTrace* trace = nullptr;
  };

  virtual ~PlanExecutor() = default;

  // Executes all instructions and returns when they are done. Asks the gate for
  // what the plan reads, and tells the listener of the loss and of the
  // gradients that it writes. Allocates nothing after the second call. Errors:
  // those of the primitives, with the layer's name; of the gate and the
  // listener, as they are.
  virtual absl::Status Run(const Step& step) = 0;

  // As Run, but one instruction after another on the calling thread, and
  // nobody hears of it: the time that each has taken. Errors: Unimplemented in
  // another memory than the host's.
  virtual absl::StatusOr<std::vector<absl::Duration>> Measure(
      const Step& /*step*/) {
    return absl::UnimplementedError(
        "measure the layers: the model computes in another memory than the "
        "host's");
  }

  // A step is not run: nobody waits for it.
  virtual void Skip(const absl::Status& /*why*/) {}

  // ParameterPlaces::read_from has changed.
  virtual void OnParametersMoved() = 0;

  // From now on the parameters that Run reads are those that the result has on
  // the device, made by `rule` with `num_slots` slots (DeviceUpdate), and no
  // gradient comes to the host by itself. Before the first Run. The result is
  // the executor's. Errors: Unimplemented without a device; those of its
  // streams.
  virtual absl::StatusOr<DeviceUpdate*> UpdateOnDevice(
      std::unique_ptr<DeviceRule> /*rule*/, int /*num_slots*/) {
    return absl::UnimplementedError(
        "update on the device: the model computes in the host's memory");
  }

  // The last Run's contents of a buffer that is live_at_end; zero before.
  virtual const void* Result(int buffer) const = 0;

  // Memory for activations, their gradients and workspaces.
  virtual int64_t arena_bytes() const = 0;
  // How much of that is the host's memory.
  virtual int64_t host_bytes() const { return 0; }
};

// Asks `gate`, unless it is null, for each of `parameters`.
absl::Status AwaitParameters(absl::Span<const int> parameters,
                             ParameterGate* gate);

// The operands of each instruction, of which `memory_of` gives the places.
std::vector<Operands> BindOperands(
    const ExecutionPlan& plan, absl::FunctionRef<void*(int buffer)> memory_of);

// Copies within the host's memory, as the transfer's buffers say.
void CopyOnHost(const ExecutionPlan& plan, const Instruction& transfer,
                const Operands& operands);

// InvalidArgument naming the loss if it reads labels as indices, and one is out
// of range: a device cannot tell.
absl::Status CheckLabelsOf(const ExecutedModel& model, const Batch& batch);

// `reporter` hears of it if the system does not let memory be pinned.
void SayIfUnpinned(const DeviceStreams& streams, const Reporter& reporter);

// With the instruction's layer in front, unless it is OK.
absl::Status NameLayer(const absl::Status& status,
                       const Instruction& instruction);

// Executes its primitive. Errors: the primitive's, with the layer's name.
absl::Status Execute(const Instruction& instruction, const Operands& operands);

// Operands::seed of a seeded instruction in a step with `step_seed`.
uint64_t SeedOf(const Instruction& instruction, uint64_t step_seed);

}  // namespace muster

#endif  // WORKER_EXECUTOR_PLAN_EXECUTOR_H_
