#include "worker/training_parts.h"

#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "worker/input/create_data_set.h"

namespace muster {
namespace {

// "auto": the first of these that is registered and has a device.
constexpr const char* kPreferredBackends[] = {"cpu", "ref"};
constexpr absl::string_view kCudaBackend = "cuda";

// A name that is meant to work one day: "unknown" would send the user looking
// for a typing error or for a driver.
absl::Status CheckDevice(absl::string_view device) {
  if (device != kCudaBackend && !absl::StartsWith(device, "cuda:")) {
    return absl::OkStatus();
  }
  if (BackendRegistry::Find(kCudaBackend).ok()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("--device=", device,
                   ": this version has no CUDA backend; use --device=cpu, or "
                   "--device=auto, which takes the best that there is"));
}

absl::StatusOr<std::unique_ptr<Backend>> CreateBest(
    const std::string& device, const BackendOptions& options) {
  if (device != "auto") return CreateBackend(device, options);
  absl::Status last;
  for (const char* const name : kPreferredBackends) {
    auto created = CreateBackend(name, options);
    if (created.ok()) return created;
    last = created.status();
  }
  return last;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Backend>> OpenDevice(const std::string& device,
                                                    int compute_threads) {
  RETURN_IF_ERROR(CheckDevice(device));
  BackendOptions options;
  options.compute_threads = compute_threads;
  ASSIGN_OR_RETURN(std::unique_ptr<Backend> backend,
                   CreateBest(device, options));
  if (backend->dtype() == FLOAT32) return backend;
  return absl::InvalidArgumentError(
      absl::StrCat("--device=", device, ": training needs a float32 backend"));
}

absl::StatusOr<std::unique_ptr<CompiledModel>> CompileTestModel(
    const TrainingSpec& training, Backend* backend) {
  CompileOptions compile;
  compile.backend = backend;
  compile.mode = CompileOptions::Mode::kEvaluate;
  compile.batch_size = training.evaluation().batch_size() > 0
                           ? training.evaluation().batch_size()
                           : training.input().batch_size();
  return CompiledModel::Create(training.model(), compile);
}

absl::StatusOr<std::unique_ptr<DataSet>> OpenDataSet(
    const TrainingSpec& training, const CompiledModel& model, Split split) {
  const std::vector<int64_t> dims(training.model().input_shape().begin(),
                                  training.model().input_shape().end());
  ASSIGN_OR_RETURN(const Shape shape, Shape::Create(dims));
  ASSIGN_OR_RETURN(
      std::unique_ptr<DataSet> data_set,
      CreateDataSet(training.input(), shape,
                    static_cast<uint64_t>(training.seed()), split));
  if (data_set->num_classes() <= model.num_classes()) return data_set;
  return absl::InvalidArgumentError(absl::StrCat(
      "the data set has ", data_set->num_classes(),
      " classes, the last layer of model '", training.model().name(), "' has ",
      model.num_classes(), " outputs: give it as many"));
}

}  // namespace muster
