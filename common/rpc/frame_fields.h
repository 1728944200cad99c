// What shared memory and TCP have in common, who carry the fields of a message
// beside its tensors.
#ifndef COMMON_RPC_FRAME_FIELDS_H_
#define COMMON_RPC_FRAME_FIELDS_H_

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/rpc/error_reason.h"
#include "common/rpc/parameter_link.h"

namespace muster {

// The largest number that an answer names its status with.
inline constexpr uint32_t kLastStatusCode =
    static_cast<uint32_t>(absl::StatusCode::kUnauthenticated);

// How long the sender of a request waits yet, as the request says so: never
// less than it does.
inline uint32_t TimeoutMs(absl::Duration left) {
  const int64_t ms =
      absl::ToInt64Milliseconds(absl::Ceil(left, absl::Milliseconds(1)));
  return static_cast<uint32_t>(std::clamp<int64_t>(ms, 0, UINT32_MAX));
}

// Makes a frame, or a message that carries no tensors, of what came over
// `link`. Errors: InvalidArgument (kDamaged), naming the link and the type,
// unless the fields are such a message.
template <typename Header>
absl::Status ParseFields(absl::string_view link, const std::string& fields,
                         absl::Cord data, Frame<Header>* frame) {
  if (!frame->header.ParseFromString(fields)) {
    return Damaged(absl::InvalidArgumentError(
        absl::StrCat(link, ": ", fields.size(), " bytes are not a ",
                     frame->header.GetTypeName())));
  }
  frame->data = std::move(data);
  return absl::OkStatus();
}
template <typename Message>
absl::Status ParseFields(absl::string_view link, const std::string& fields,
                         absl::Cord data, Message* parsed) {
  Frame<Message> frame;
  absl::Status status = ParseFields(link, fields, std::move(data), &frame);
  if (!status.ok()) return status;
  if (!frame.data.empty()) {
    return Damaged(absl::InvalidArgumentError(absl::StrCat(
        link, ": a ", frame.header.GetTypeName(), " carries tensors")));
  }
  *parsed = std::move(frame.header);
  return absl::OkStatus();
}

}  // namespace muster

#endif  // COMMON_RPC_FRAME_FIELDS_H_
