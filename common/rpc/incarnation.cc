#include "common/rpc/incarnation.h"

#include <random>

namespace muster {

uint64_t NewIncarnation() {
  std::random_device random;
  const uint64_t high = random();
  const uint64_t incarnation = (high << 32) | random();
  return incarnation == 0 ? 1 : incarnation;
}

}  // namespace muster
