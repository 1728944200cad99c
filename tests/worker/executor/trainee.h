#ifndef TESTS_WORKER_EXECUTOR_TRAINEE_H_
#define TESTS_WORKER_EXECUTOR_TRAINEE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "tests/testing/reported_lines.h"
#include "tests/worker/backend/fake_device.h"
#include "tests/worker/model/test_models.h"
#include "worker/backend/device_mean.h"
#include "worker/executor/compiled_model.h"

namespace muster {

// Plain SGD on the host.
void Update(CompiledModel* model);

// A model that is trained, on a fake device or on the host.
class Trainee {
 public:
  // Rows of a batch.
  static constexpr int64_t kRows = 4;

  Trainee(std::unique_ptr<Backend> backend, const ModelSpec& spec,
          bool use_graphs = true, DeviceMean* mean = nullptr);

  // A step, and its update.
  absl::StatusOr<CompiledModel::StepResult> Train(
      const Batch& batch, uint64_t seed, StepListener* listener = nullptr,
      ParameterGate* gate = nullptr, SeededBatch next = {});
  CompiledModel& model() { return *model_; }
  std::vector<std::string> said() const { return said_.lines(); }

 private:
  const std::unique_ptr<Backend> backend_;
  std::unique_ptr<CompiledModel> model_;
  ReportedLines said_;
};

// To the bit.
void ExpectSameGradients(CompiledModel& found, CompiledModel& wanted);

// kManyUsesModel with dropout, and with weights of two dense layers that are
// each worth a segment: of 256 x 256.
ModelSpec WideModel();
// Up to the reader of each, to the loss, to the gradient of one, to the
// penalty, to the gradient of the other, to the end.
inline constexpr int kWideSegments = 7;

// With the primitives of the backend `inner`.
std::unique_ptr<FakeDevice> MakeDevice(const std::string& inner,
                                       uint64_t seed = 1);

}  // namespace muster

#endif  // TESTS_WORKER_EXECUTOR_TRAINEE_H_
