#ifndef WORKER_INPUT_STREAM_CREATE_STREAM_H_
#define WORKER_INPUT_STREAM_CREATE_STREAM_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "common/tensor/shape.h"
#include "proto/training.pb.h"
#include "worker/input/data_set/data_set_registry.h"
#include "worker/input/stream/example_stream.h"

namespace muster {

// Opens the training half of the data set that `spec` names as a stream, at its
// beginning. The arguments are those of CreateDataSet.
//   num_classes: classes of rows, if they have any, are below it.
// Errors: CreateDataSet's; InvalidArgument for a type that is no stream, by
// name.
absl::StatusOr<std::unique_ptr<ExampleStream>> CreateStream(
    const InputSpec& spec, const Shape& input_shape, uint64_t seed,
    const LabelSpec& labels, int64_t num_classes,
    std::shared_ptr<const DataSchema> run = nullptr);

}  // namespace muster

#endif  // WORKER_INPUT_STREAM_CREATE_STREAM_H_
