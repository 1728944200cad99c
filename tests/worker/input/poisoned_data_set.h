#ifndef TESTS_WORKER_INPUT_POISONED_DATA_SET_H_
#define TESTS_WORKER_INPUT_POISONED_DATA_SET_H_

#include <cstdint>

#include "tests/worker/input/counting_data_set.h"

namespace muster {

// Example `index` has a value that a real one never has.
class PoisonedDataSet : public CountingDataSet {
 public:
  PoisonedDataSet(int64_t num_examples, int64_t index, float poison)
      : CountingDataSet(num_examples), index_(index), poison_(poison) {}

  absl::Status Read(int64_t index, const ExampleMemory& into) const override {
    const absl::Status status = CountingDataSet::Read(index, into);
    if (index == index_) into.values[1] = poison_;
    return status;
  }

 private:
  const int64_t index_;
  const float poison_;
};

}  // namespace muster

#endif  // TESTS_WORKER_INPUT_POISONED_DATA_SET_H_
