#ifndef COMMON_RPC_FRAME_DATA_METHOD_H_
#define COMMON_RPC_FRAME_DATA_METHOD_H_

#include <cstdint>

namespace muster {

// The calls whose request or reply has tensors, by the number that shared
// memory and TCP name them with. From outside it may be any number.
enum class DataMethod : uint32_t {
  kLoad = 11,
  kPull = 12,
  kPush = 13,
  kReadSnapshot = 14,
  kPullRows = 15,
};

}  // namespace muster

#endif  // COMMON_RPC_FRAME_DATA_METHOD_H_
