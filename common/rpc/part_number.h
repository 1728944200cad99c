#ifndef COMMON_RPC_PART_NUMBER_H_
#define COMMON_RPC_PART_NUMBER_H_

#include <cstdint>

#include "common/base/split_mix64.h"

namespace muster {

// The number by which a profile knows a part of a push, the same at the worker
// and at the ps (ProfileEvent.part): of the sender's start, its step, the ps
// task and the part's own number there. Not 0.
constexpr uint64_t PartNumber(uint64_t incarnation, int64_t step, int ps_task,
                              int part) {
  uint64_t number = SplitMix64(incarnation);
  number = SplitMix64(number + static_cast<uint64_t>(step));
  number = SplitMix64(number + static_cast<uint64_t>(ps_task));
  number = SplitMix64(number + static_cast<uint64_t>(part));
  return number == 0 ? 1 : number;
}

}  // namespace muster

#endif  // COMMON_RPC_PART_NUMBER_H_
