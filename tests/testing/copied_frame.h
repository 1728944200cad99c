#ifndef TESTS_TESTING_COPIED_FRAME_H_
#define TESTS_TESTING_COPIED_FRAME_H_

#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/cord.h"
#include "common/rpc/parameter_link.h"

namespace muster {

// As after a network: what arrives is another memory.
template <typename Header>
Frame<Header> Copied(Frame<Header> frame) {
  frame.data = absl::Cord(std::string(frame.data));
  return frame;
}

// Any other message is its own copy.
template <typename Message>
Message Copied(Message message) {
  return message;
}

template <typename Reply>
absl::StatusOr<Reply> Copied(absl::StatusOr<Reply> reply) {
  if (!reply.ok()) return reply;
  return Copied(*std::move(reply));
}

}  // namespace muster

#endif  // TESTS_TESTING_COPIED_FRAME_H_
