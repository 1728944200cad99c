#ifndef WORKER_INPUT_DATA_SET_ROW_MAPPER_H_
#define WORKER_INPUT_DATA_SET_ROW_MAPPER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "common/tensor/aligned_buffer.h"
#include "common/tensor/shape.h"
#include "proto/training.pb.h"
#include "worker/input/data_set/data_set.h"
#include "worker/input/map/map_chain.h"

namespace muster {

// The stages of input.map for rows that are read one by one, with the memory
// between. Thread-safe.
class RowMapper {
 public:
  // Reads a row as it is before the map.
  using Read = absl::FunctionRef<absl::Status(const ExampleMemory& into)>;

  // The map of `spec`; null without input.map and input.shape: rows are as the
  // model reads them. `stored` is a row before the map. Errors: InvalidArgument
  // naming input.map (a stage, or rows after the last one that are no floats of
  // as many values as `input_shape`).
  static absl::StatusOr<std::unique_ptr<RowMapper>> Create(
      const InputSpec& spec, const Shape& stored, const Shape& input_shape,
      uint64_t seed);

  // As the model reads it.
  const Shape& example_shape() const { return example_shape_; }

  // Writes row `row` after the map. Random numbers are a function of (seed,
  // epoch, row); without an epoch there are none, and a random stage does what
  // stands for all that it might have done. Errors: those of `read` and of a
  // stage.
  absl::Status Map(int64_t row, std::optional<int64_t> epoch, Read read,
                   const ExampleMemory& into) const;

 private:
  // Memory of one thread.
  struct Work {
    AlignedBuffer stored;
    MapChain::Scratch scratch;
  };

  RowMapper(MapChain chain, const Shape& example_shape, uint64_t seed);

  std::unique_ptr<Work> TakeWork() const;

  // Constant after construction.
  const MapChain chain_;
  const Shape example_shape_;
  const uint64_t seed_;

  mutable absl::Mutex mu_;
  // As many as threads ever read at once.
  mutable std::vector<std::unique_ptr<Work>> free_ ABSL_GUARDED_BY(mu_);
};

}  // namespace muster

#endif  // WORKER_INPUT_DATA_SET_ROW_MAPPER_H_
