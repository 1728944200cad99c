#ifndef COMMON_RPC_TENSOR_MAGIC_H_
#define COMMON_RPC_TENSOR_MAGIC_H_

#include "absl/strings/string_view.h"

namespace muster {

// The first bytes of a connection for tensors, in clear, with and without keys.
// No client of HTTP ('P', 'G') or TLS (0x16) begins so.
inline constexpr absl::string_view kTensorMagic = "\xa7MUSTER1";

}  // namespace muster

#endif  // COMMON_RPC_TENSOR_MAGIC_H_
