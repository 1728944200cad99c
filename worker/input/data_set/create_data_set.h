#ifndef WORKER_INPUT_DATA_SET_CREATE_DATA_SET_H_
#define WORKER_INPUT_DATA_SET_CREATE_DATA_SET_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "common/base/work_progress.h"
#include "common/tensor/shape.h"
#include "proto/training.pb.h"
#include "worker/input/data_set/data_set.h"
#include "worker/input/data_set/data_set_registry.h"

namespace muster {

// The request to a type, which the fields of `spec` are checked against; the
// arguments are those of CreateDataSet. Errors: InvalidArgument naming the
// field.
absl::StatusOr<DataSetRequest> MakeDataSetRequest(const InputSpec& spec,
                                                  const Shape& input_shape,
                                                  uint64_t seed, Split split,
                                                  const LabelSpec& labels);

// Opens the data set that `spec` names (README.md lists the types).
//   input_shape: one example as the model reads it, after input.map; a data set
//   of other shape but as many values is reshaped ([28, 28] as [1, 28, 28] or
//   [784]).
//   seed: makes the synthetic set, and the random numbers of input.map.
//   run: what the run's data are; null: these are a new run's. Its columns are
//   found by name, its classes have its numbers.
//   split: with input.test_fraction the test half is rows of the training half,
//   and with input.validation_fraction the validation half; the run's seed, or
//   else `seed`, chooses them.
//   labels: for targets, of a type that has classes alone: the class itself as
//   the one target, or 1 at the place of the class and 0 elsewhere.
//   output: shows how far the opening is.
// Errors: NotFound and InvalidArgument, each naming the file or the field, what
// was wanted, what was found and what to do; Unavailable if a file cannot be
// read.
absl::StatusOr<std::unique_ptr<DataSet>> CreateDataSet(
    const InputSpec& spec, const Shape& input_shape, uint64_t seed, Split split,
    const LabelSpec& labels = {},
    std::shared_ptr<const DataSchema> run = nullptr,
    const ProgressOutput& output = {});

// Whether there is anything of a test half, whole or broken. REQUIRES: a data
// set that CreateDataSet opens. Errors: those of the folder.
absl::StatusOr<bool> HasTestHalf(const InputSpec& spec);

}  // namespace muster

#endif  // WORKER_INPUT_DATA_SET_CREATE_DATA_SET_H_
