#include "worker/input/data_set/mapped_data_set.h"

#include <optional>

#include "common/base/status_macros.h"

namespace muster {

absl::StatusOr<std::unique_ptr<DataSet>> MappedDataSet::Create(
    std::unique_ptr<DataSet> stored,
    const google::protobuf::RepeatedPtrField<MapSpec>& map,
    const Shape& input_shape, uint64_t seed) {
  ASSIGN_OR_RETURN(
      std::unique_ptr<RowMapper> mapper,
      RowMapper::Create(stored->example_shape(), map, input_shape, seed));
  return std::unique_ptr<DataSet>(
      new MappedDataSet(std::move(stored), std::move(mapper)));
}

absl::Status MappedDataSet::Read(int64_t index,
                                 const ExampleMemory& into) const {
  const auto read = [&](const ExampleMemory& stored) {
    return stored_->Read(index, stored);
  };
  return mapper_->Map(index, std::nullopt, read, into);
}

absl::Status MappedDataSet::ReadInEpoch(int64_t index, int64_t epoch,
                                        const ExampleMemory& into) const {
  const auto read = [&](const ExampleMemory& stored) {
    return stored_->Read(index, stored);
  };
  return mapper_->Map(index, epoch, read, into);
}

}  // namespace muster
