#include "worker/input/data_set/row_mapper.h"

#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "worker/input/map/row_random.h"
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

absl::StatusOr<std::unique_ptr<RowMapper>> RowMapper::Create(
    const InputSpec& spec, const Shape& stored, const Shape& input_shape,
    uint64_t seed) {
  if (spec.map().empty() && spec.shape().empty()) return nullptr;
  std::vector<MapStageSpec> stages;
  for (const MapSpec& stage : spec.map()) {
    stages.push_back({stage.type(), stage.attr()});
  }
  absl::StatusOr<MapChain> chain = MapChain::Create(stages, {FLOAT32, stored});
  if (!chain.ok()) return Annotate(chain.status(), "input.map");
  RETURN_IF_ERROR(CheckOutput(chain->output(), input_shape));
  return absl::WrapUnique(new RowMapper(*std::move(chain), input_shape, seed));
}

RowMapper::RowMapper(MapChain chain, const Shape& example_shape, uint64_t seed)
    : chain_(std::move(chain)), example_shape_(example_shape), seed_(seed) {}

absl::Status RowMapper::Map(int64_t row, std::optional<int64_t> epoch,
                            Read read, const ExampleMemory& into) const {
  std::unique_ptr<Work> work = TakeWork();
  ExampleMemory stored = into;
  stored.values = work->stored.as<float>();
  std::optional<RowRandom> random;
  if (epoch.has_value()) random.emplace(seed_, *epoch, row);
  absl::Status status = read(stored);
  if (status.ok()) {
    const auto src_bytes = static_cast<size_t>(chain_.input().num_bytes());
    const auto dst_bytes = static_cast<size_t>(chain_.output().num_bytes());
    status = chain_.Apply({work->stored.as<char>(), src_bytes},
                          {reinterpret_cast<char*>(into.values), dst_bytes},
                          random, &work->scratch);
    if (!status.ok()) status = Annotate(status, absl::StrCat("example ", row));
  }
  const absl::MutexLock lock(&mu_);
  free_.push_back(std::move(work));
  return status;
}

std::unique_ptr<RowMapper::Work> RowMapper::TakeWork() const {
  {
    const absl::MutexLock lock(&mu_);
    if (!free_.empty()) {
      std::unique_ptr<Work> work = std::move(free_.back());
      free_.pop_back();
      return work;
    }
  }
  return absl::WrapUnique(new Work{AlignedBuffer(chain_.input().num_bytes()),
                                   chain_.MakeScratch()});
}

}  // namespace muster
