#include "worker/checkpoint/initial_weights.h"

#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/float_tensor.h"
#include "common/checkpoint/train_dir.h"
#include "common/tensor/shape.h"

namespace muster {
namespace {

// Everything that is wrong with the file is a wrong flag to its user.
absl::Status AsBadFlag(const absl::Status& status, const std::string& path) {
  if (status.ok()) return status;
  return absl::InvalidArgumentError(
      absl::StrCat("--init_from=", path, ": ", status.message()));
}

}  // namespace

InitialWeights::InitialWeights(std::string path,
                               std::unique_ptr<SafetensorsReader> reader)
    : path_(std::move(path)), reader_(std::move(reader)) {}

absl::StatusOr<std::unique_ptr<InitialWeights>> InitialWeights::Open(
    FileSystem* file_system, const Options& options,
    absl::Span<const TensorDef> parameters) {
  absl::StatusOr<std::unique_ptr<SafetensorsReader>> reader =
      SafetensorsReader::Open(file_system, options.path);
  if (!reader.ok()) return AsBadFlag(reader.status(), options.path);
  std::unique_ptr<InitialWeights> weights(
      new InitialWeights(options.path, *std::move(reader)));
  RETURN_IF_ERROR(AsBadFlag(weights->Match(options, parameters), options.path));
  RETURN_IF_ERROR(AsBadFlag(weights->CheckValues(parameters), options.path));
  return weights;
}

absl::StatusOr<std::unique_ptr<InitialWeights>> InitialWeights::OpenForRun(
    FileSystem* file_system, const Options& options,
    absl::Span<const TensorDef> parameters, const std::string& train_dir,
    const Reporter& reporter) {
  if (options.path.empty()) return nullptr;
  if (!train_dir.empty()) {
    ASSIGN_OR_RETURN(const std::vector<int64_t> steps,
                     ListCheckpoints(file_system, train_dir));
    if (!steps.empty()) {
      reporter.Info(absl::StrCat("--init_from=", options.path,
                                 " is not used: train_dir ", train_dir,
                                 " has a checkpoint of step ", steps.front(),
                                 ", and the training there goes on"));
      return nullptr;
    }
  }
  auto weights = Open(file_system, options, parameters);
  if (!weights.ok()) return weights;
  for (const std::string& remark : (*weights)->remarks()) {
    reporter.Info(absl::StrCat("--init_from: ", remark));
  }
  return weights;
}

absl::Status InitialWeights::Match(const Options& options,
                                   absl::Span<const TensorDef> parameters) {
  std::vector<SourceTensor> tensors;
  for (const SafetensorsEntry& entry : reader_->entries()) {
    tensors.push_back({entry.name, entry.shape, entry.format_dtype});
  }
  ASSIGN_OR_RETURN(const TensorMatch match,
                   MatchTensors(tensors, parameters, options, "the file"));
  for (const int source : match.sources) {
    sources_.push_back(source < 0 ? "" : tensors[source].name);
  }
  remarks_ = match.remarks;
  return absl::OkStatus();
}

absl::Status InitialWeights::CheckValues(
    absl::Span<const TensorDef> parameters) const {
  std::vector<float> values;
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (sources_[i].empty()) continue;
    values.resize(static_cast<size_t>(NumElements(parameters[i].shape())));
    RETURN_IF_ERROR(Read(i, absl::MakeSpan(values)));
  }
  return absl::OkStatus();
}

int InitialWeights::num_tensors() const {
  return static_cast<int>(absl::c_count_if(
      sources_, [](const std::string& name) { return !name.empty(); }));
}

absl::Status InitialWeights::Read(size_t parameter,
                                  absl::Span<float> dst) const {
  if (sources_[parameter].empty()) return absl::OkStatus();
  return ReadFloats(*reader_, sources_[parameter], dst);
}

}  // namespace muster
