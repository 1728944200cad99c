#include "worker/input/data_set/mapped_data_set.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "common/base/status_macros.h"
#include "worker/input/map/row_spec.h"

namespace muster {
namespace {

absl::Status CheckOutput(const RowSpec& output, const Shape& input_shape) {
  if (output.dtype == FLOAT32 &&
      output.shape.num_elements() == input_shape.num_elements()) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "input.map: makes ", output.ToString(), ", model.input_shape wants ",
      RowSpec{FLOAT32, input_shape}.ToString(),
      "; add a stage that makes it, or set model.input_shape"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<DataSet>> MappedDataSet::Create(
    std::unique_ptr<DataSet> stored,
    const google::protobuf::RepeatedPtrField<MapSpec>& map,
    const Shape& input_shape, uint64_t seed) {
  std::vector<MapStageSpec> stages;
  for (const MapSpec& stage : map) {
    stages.push_back({stage.type(), stage.attr()});
  }
  absl::StatusOr<MapChain> chain =
      MapChain::Create(stages, {FLOAT32, stored->example_shape()});
  if (!chain.ok()) return Annotate(chain.status(), "input.map");
  RETURN_IF_ERROR(CheckOutput(chain->output(), input_shape));
  return std::unique_ptr<DataSet>(new MappedDataSet(
      std::move(stored), *std::move(chain), input_shape, seed));
}

MappedDataSet::MappedDataSet(std::unique_ptr<DataSet> stored, MapChain chain,
                             const Shape& example_shape, uint64_t seed)
    : stored_(std::move(stored)),
      chain_(std::move(chain)),
      example_shape_(example_shape),
      seed_(seed) {}

absl::Status MappedDataSet::Read(int64_t index,
                                 const ExampleMemory& into) const {
  return Map(index, std::nullopt, into);
}

absl::Status MappedDataSet::ReadInEpoch(int64_t index, int64_t epoch,
                                        const ExampleMemory& into) const {
  return Map(index, RowRandom(seed_, epoch, index), into);
}

absl::Status MappedDataSet::Map(int64_t index,
                                const std::optional<RowRandom>& random,
                                const ExampleMemory& into) const {
  std::unique_ptr<Work> work = TakeWork();
  ExampleMemory stored = into;
  stored.values = work->stored.as<float>();
  absl::Status status = stored_->Read(index, stored);
  if (status.ok()) {
    const auto src_bytes = static_cast<size_t>(chain_.input().num_bytes());
    const auto dst_bytes = static_cast<size_t>(chain_.output().num_bytes());
    status =
        Annotate(chain_.Apply({work->stored.as<char>(), src_bytes},
                              {reinterpret_cast<char*>(into.values), dst_bytes},
                              random, &work->scratch),
                 absl::StrCat("example ", index));
  }
  const absl::MutexLock lock(&mu_);
  free_.push_back(std::move(work));
  return status;
}

std::unique_ptr<MappedDataSet::Work> MappedDataSet::TakeWork() const {
  {
    const absl::MutexLock lock(&mu_);
    if (!free_.empty()) {
      std::unique_ptr<Work> work = std::move(free_.back());
      free_.pop_back();
      return work;
    }
  }
  return std::unique_ptr<Work>(new Work{
      AlignedBuffer(chain_.input().num_bytes()), chain_.MakeScratch()});
}

}  // namespace muster
