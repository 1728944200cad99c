#ifndef COMMON_RPC_INCARNATION_H_
#define COMMON_RPC_INCARNATION_H_

#include <cstdint>

namespace muster {

// A start number for this process: random, not 0, another at every call.
uint64_t NewIncarnation();

}  // namespace muster

#endif  // COMMON_RPC_INCARNATION_H_
