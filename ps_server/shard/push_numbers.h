#ifndef PS_SERVER_SHARD_PUSH_NUMBERS_H_
#define PS_SERVER_SHARD_PUSH_NUMBERS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "proto/parameter_service.pb.h"

namespace muster {

// Checks the numbers of a push to a shard that is at `version`: step, part,
// pulled version, counts, learning rate's factor. Errors, beginning with
// `what`: InvalidArgument; Unimplemented for a learning rate.
absl::Status CheckPushNumbers(absl::string_view what, const PushPart& header,
                              int64_t version);

}  // namespace muster

#endif  // PS_SERVER_SHARD_PUSH_NUMBERS_H_
