#ifndef PS_SERVER_SHARD_FENCED_H_
#define PS_SERVER_SHARD_FENCED_H_

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/rpc/protocol.h"

namespace muster {

// The answer to a request that means a state, or comes from a start of a task,
// that is gone.
inline absl::Status Fenced(absl::string_view message) {
  return absl::FailedPreconditionError(absl::StrCat(kFencedPrefix, message));
}

}  // namespace muster

#endif  // PS_SERVER_SHARD_FENCED_H_
