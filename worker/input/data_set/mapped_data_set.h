#ifndef WORKER_INPUT_DATA_SET_MAPPED_DATA_SET_H_
#define WORKER_INPUT_DATA_SET_MAPPED_DATA_SET_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "common/tensor/aligned_buffer.h"
#include "common/tensor/shape.h"
#include "proto/training.pb.h"
#include "worker/input/data_set/data_set.h"
#include "worker/input/map/map_chain.h"
#include "worker/input/map/row_random.h"

namespace muster {

// A data set whose examples go through the stages of input.map. For training
// (ReadInEpoch) their random numbers are a function of (seed, epoch, index);
// else there are none, and a random stage does what stands for all that it
// might have done. Thread-safe.
class MappedDataSet : public DataSet {
 public:
  // `stored` has the examples before the map. Errors: InvalidArgument naming
  // input.map (a stage, or examples after the last one that are no floats of
  // as many values as `input_shape`).
  static absl::StatusOr<std::unique_ptr<DataSet>> Create(
      std::unique_ptr<DataSet> stored,
      const google::protobuf::RepeatedPtrField<MapSpec>& map,
      const Shape& input_shape, uint64_t seed);

  int64_t num_examples() const override { return stored_->num_examples(); }
  const Shape& example_shape() const override { return example_shape_; }
  int64_t num_classes() const override { return stored_->num_classes(); }
  std::vector<std::string> ClassNames() const override {
    return stored_->ClassNames();
  }
  int64_t num_targets() const override { return stored_->num_targets(); }
  std::string RowName(int64_t index) const override {
    return stored_->RowName(index);
  }
  std::string LargestLabelPlace() const override {
    return stored_->LargestLabelPlace();
  }
  absl::Status Read(int64_t index, const ExampleMemory& into) const override;
  absl::Status ReadInEpoch(int64_t index, int64_t epoch,
                           const ExampleMemory& into) const override;

 private:
  // Memory of one reading thread.
  struct Work {
    AlignedBuffer stored;
    MapChain::Scratch scratch;
  };

  MappedDataSet(std::unique_ptr<DataSet> stored, MapChain chain,
                const Shape& example_shape, uint64_t seed);

  absl::Status Map(int64_t index, const std::optional<RowRandom>& random,
                   const ExampleMemory& into) const;
  std::unique_ptr<Work> TakeWork() const;

  // Constant after construction.
  const std::unique_ptr<DataSet> stored_;
  const MapChain chain_;
  const Shape example_shape_;
  const uint64_t seed_;

  mutable absl::Mutex mu_;
  // As many as threads ever read at once.
  mutable std::vector<std::unique_ptr<Work>> free_ ABSL_GUARDED_BY(mu_);
};

}  // namespace muster

#endif  // WORKER_INPUT_DATA_SET_MAPPED_DATA_SET_H_
