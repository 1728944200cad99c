#include "worker/input/create_data_set.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "worker/input/data_set_registry.h"

namespace muster {

absl::StatusOr<std::unique_ptr<DataSet>> CreateDataSet(const InputSpec& spec,
                                                       const Shape& input_shape,
                                                       uint64_t seed,
                                                       Split split) {
  const absl::StatusOr<DataSetType> type = DataSetRegistry::Find(spec.type());
  if (!type.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("input.type: ", type.status().message()));
  }
  return type->create(spec, input_shape, seed, split);
}

}  // namespace muster
