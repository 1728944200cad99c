#ifndef TESTS_SIMULATION_HISTORIES_H_
#define TESTS_SIMULATION_HISTORIES_H_

#include <cstdint>
#include <string>

#include "tests/simulation/running_hash.h"
#include "tests/simulation/simulation.h"

namespace muster {

// The histories of many seeds as text, to be kept and compared: a line for each
// ten, with the hash of what happened and that of the parameters at the end.
//
//   seeds 1-10 history 5f... parameters a3...
class Histories {
 public:
  static constexpr uint64_t kSeedsInALine = 10;

  // The result of the next seed. REQUIRES: in order, from 1 on.
  void Add(const SimulationResult& result);
  // All whole lines so far.
  const std::string& text() const { return text_; }

 private:
  uint64_t seeds_ = 0;
  RunningHash history_;
  RunningHash parameters_;
  std::string text_;
};

}  // namespace muster

#endif  // TESTS_SIMULATION_HISTORIES_H_
