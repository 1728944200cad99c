#ifndef WORKER_INPUT_CREATE_DATA_SET_H_
#define WORKER_INPUT_CREATE_DATA_SET_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "common/tensor/shape.h"
#include "proto/training.pb.h"
#include "worker/input/data_set.h"

namespace muster {

// Opens the data set that `spec` names (README.md lists the types).
//   input_shape: one example as the model reads it, after input.map; a data set
//   of other shape but as many values is reshaped ([28, 28] as [1, 28, 28] or
//   [784]).
//   seed: makes the synthetic set, and the random numbers of input.map.
// Errors: NotFound and InvalidArgument, each naming the file or the field, what
// was wanted, what was found and what to do; Unavailable if a file cannot be
// read.
absl::StatusOr<std::unique_ptr<DataSet>> CreateDataSet(const InputSpec& spec,
                                                       const Shape& input_shape,
                                                       uint64_t seed,
                                                       Split split);

}  // namespace muster

#endif  // WORKER_INPUT_CREATE_DATA_SET_H_
