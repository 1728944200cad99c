#ifndef TESTS_SIMULATION_RANDOM_H_
#define TESTS_SIMULATION_RANDOM_H_

#include <cmath>
#include <cstdint>
#include <random>

#include "absl/time/time.h"

namespace muster {

// Dice whose numbers are the same with every library (those of <random>'s
// distributions are not).
class Random {
 public:
  explicit Random(uint64_t seed) : engine_(seed) {}

  uint64_t Next() { return engine_(); }
  // In [0, 1).
  double Fraction() { return static_cast<double>(engine_() >> 11) * 0x1p-53; }
  bool Happens(double probability) { return Fraction() < probability; }
  // In [low, high].
  int64_t Between(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(engine_() % (high - low + 1));
  }
  // Mostly short, sometimes long: exponential.
  absl::Duration About(absl::Duration mean) {
    return mean * -std::log1p(-Fraction());
  }

 private:
  std::mt19937_64 engine_;
};

}  // namespace muster

#endif  // TESTS_SIMULATION_RANDOM_H_
