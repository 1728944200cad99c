#ifndef TESTS_SIMULATION_SIM_MODEL_H_
#define TESTS_SIMULATION_SIM_MODEL_H_

#include <vector>

#include "tests/simulation/bug.h"
#include "tests/simulation/scenario.h"
#include "worker/training/placed_model.h"

namespace muster {

// The values of all tensors, in creation order; or of a ps task's blocks.
using TensorValues = std::vector<std::vector<float>>;

bool SameBits(const TensorValues& a, const TensorValues& b);

// A block of a tensor, as a checkpoint and a ps task have it, with one counter
// a worker from element `first` of the block on.
struct CounterBlock {
  int tensor = 0;
  int64_t begin = 0;
  int64_t length = 0;
  // Another one in each block, so that they cannot be taken for each other.
  int64_t first = 0;
  // The part of its ps task's pushes that it is in.
  int part = 0;
};

// The trained model: counters. A step of worker w adds kUnit times a value of
// its own to counter w of every block. So each part of a push, on each shard,
// says which steps of each worker were applied to it; and in sync an update of
// k workers adds kUnit / k times the values, whole numbers. Every third tensor
// is state, as batch norm's averages are: its pushes are added, without a rule.
struct SimModel {
  // Can be divided by every number of workers.
  static constexpr int kUnit = 12;
  // So that the sums of a whole job, some hundred pushes, stay below 2^24.
  static constexpr int64_t kMostPushValue = 4096;

  // From 1 to kMostPushValue; no two pushes of a job are likely to share one,
  // nor any few of them a sum.
  static int64_t PushValue(uint64_t incarnation, int64_t step);

  Scenario scenario;
  PlacedModel placed;
  // The slots of each tensor.
  std::vector<std::string> slots;
  // By ps task: its blocks, in creation order.
  std::vector<std::vector<CounterBlock>> blocks_of;

  // The blocks of a ps task as messages name them.
  std::vector<TensorSlice> SlicesOf(int ps) const;
};

SimModel MakeSimModel(const Scenario& scenario, Bug bug);

}  // namespace muster

#endif  // TESTS_SIMULATION_SIM_MODEL_H_
