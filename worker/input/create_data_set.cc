#include "worker/input/create_data_set.h"

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/base/nearest_name.h"
#include "worker/input/idx_data_set.h"
#include "worker/input/synthetic_data_set.h"

namespace muster {

absl::StatusOr<std::unique_ptr<DataSet>> CreateDataSet(const InputSpec& spec,
                                                       const Shape& input_shape,
                                                       uint64_t seed,
                                                       Split split) {
  if (spec.type() == "idx") {
    return IdxDataSet::Create(spec.dir(), input_shape,
                              split == Split::kTrain ? "train" : "t10k");
  }
  if (spec.type() == "synthetic") {
    return SyntheticDataSet::Create(spec, input_shape, seed, split);
  }
  const std::vector<std::string> known = {"idx", "synthetic"};
  return absl::InvalidArgumentError(
      "input.type: " + UnknownNameMessage("data set", spec.type(), known));
}

}  // namespace muster
