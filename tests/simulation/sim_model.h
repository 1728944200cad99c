#ifndef TESTS_SIMULATION_SIM_MODEL_H_
#define TESTS_SIMULATION_SIM_MODEL_H_

#include <vector>

#include "tests/simulation/bug.h"
#include "tests/simulation/scenario.h"
#include "worker/training/placed_model.h"

namespace muster {

// The values of all tensors, in creation order.
using TensorValues = std::vector<std::vector<float>>;

bool SameBits(const TensorValues& a, const TensorValues& b);

// What is trained: counters. Each tensor has one element a worker; a step of
// worker w adds kUnit to element w of every tensor. So each part of a push, on
// each shard, says how many steps of each worker were applied to it; and in
// sync an update of k workers adds kUnit / k, which is a whole number.
struct SimModel {
  // Can be divided by every number of workers.
  static constexpr int kUnit = 12;

  Scenario scenario;
  PlacedModel placed;
  // The slots of each tensor.
  std::vector<std::string> slots;
  // By ps task: the indices of its tensors, in creation order.
  std::vector<std::vector<int>> tensors_of;
  // By tensor: the part of its ps task's pushes that it is in.
  std::vector<int> part_of;

  int num_tensors() const { return static_cast<int>(placed.tensors.size()); }
  std::vector<TensorDef> DefsOf(int ps) const;
};

SimModel MakeSimModel(const Scenario& scenario, Bug bug);

}  // namespace muster

#endif  // TESTS_SIMULATION_SIM_MODEL_H_
