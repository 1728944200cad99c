#ifndef WORKER_INPUT_DATA_SET_MAPPED_DATA_SET_H_
#define WORKER_INPUT_DATA_SET_MAPPED_DATA_SET_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "common/tensor/shape.h"
#include "proto/training.pb.h"
#include "worker/input/data_set/data_set.h"
#include "worker/input/data_set/row_mapper.h"

namespace muster {

// A data set whose examples go through the stages of input.map. For training
// (ReadInEpoch) their random numbers are a function of (seed, epoch, index);
// else there are none, and a random stage does what stands for all that it
// might have done. Thread-safe.
class MappedDataSet : public DataSet {
 public:
  // `stored` has the examples before the map. Errors: RowMapper::Create's.
  static absl::StatusOr<std::unique_ptr<DataSet>> Create(
      std::unique_ptr<DataSet> stored,
      const google::protobuf::RepeatedPtrField<MapSpec>& map,
      const Shape& input_shape, uint64_t seed);

  int64_t num_examples() const override { return stored_->num_examples(); }
  const Shape& example_shape() const override {
    return mapper_->example_shape();
  }
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
  std::vector<std::string> Files() const override { return stored_->Files(); }
  absl::Status Read(int64_t index, const ExampleMemory& into) const override;
  absl::Status ReadInEpoch(int64_t index, int64_t epoch,
                           const ExampleMemory& into) const override;

 private:
  MappedDataSet(std::unique_ptr<DataSet> stored,
                std::unique_ptr<RowMapper> mapper)
      : stored_(std::move(stored)), mapper_(std::move(mapper)) {}

  const std::unique_ptr<DataSet> stored_;
  const std::unique_ptr<RowMapper> mapper_;
};

}  // namespace muster

#endif  // WORKER_INPUT_DATA_SET_MAPPED_DATA_SET_H_
