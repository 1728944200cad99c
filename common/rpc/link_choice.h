#ifndef COMMON_RPC_LINK_CHOICE_H_
#define COMMON_RPC_LINK_CHOICE_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace muster {

// The carrier of tensors between a worker and a ps.
enum class LinkChoice {
  // Shared memory where it is to be had, else TCP, else gRPC.
  kAuto,
  // Nothing else.
  kSharedMemory,
  kTcp,
  kGrpc,
};

// Reads --link: auto, shared_memory, tcp or grpc. Errors: InvalidArgument.
absl::StatusOr<LinkChoice> ParseLinkChoice(absl::string_view text);

}  // namespace muster

#endif  // COMMON_RPC_LINK_CHOICE_H_
