// Numbers that both ends of the wire must agree on.
#ifndef COMMON_RPC_PROTOCOL_H_
#define COMMON_RPC_PROTOCOL_H_

#include <cstdint>

#include "absl/strings/string_view.h"
#include "common/tensor/blocks.h"  // IWYU pragma: export

namespace muster {

// Raised whenever an old peer would misread a message; a ps refuses another.
inline constexpr int32_t kProtocolVersion = 9;

// What to do about a peer of another protocol.
inline constexpr absl::string_view kOtherProtocolAdvice =
    "stop the job, and start it with one version everywhere: it goes on from "
    "its "
    "checkpoint";

// Printed by --version and exchanged in Hello.
inline constexpr absl::string_view kMusterVersion = "0.1.0";

// A part is at most this many tensor bytes: 4 blocks. Below gRPC's default
// limit of 4 MiB with any header.
inline constexpr int64_t kMaxPartBytes = 4 * kBlockElements * 4;

// A step has at most so many parts for one shard: a ps keeps a bit for each.
inline constexpr int32_t kMaxStepParts = 4096;

// The most that a frame's header adds to a part.
inline constexpr int64_t kMaxHeaderBytes = 64 * 1024;

}  // namespace muster

#endif  // COMMON_RPC_PROTOCOL_H_
