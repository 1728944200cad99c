#ifndef PS_SERVER_SHARD_PUSH_CONTEXT_H_
#define PS_SERVER_SHARD_PUSH_CONTEXT_H_

#include <cstddef>
#include <functional>

#include "absl/functional/function_ref.h"
#include "absl/strings/cord.h"

namespace muster {

// Memory for the values of an answer, asked for when the request has passed
// every check: returns a Cord of `size_bytes` bytes (1 or more), after it has
// called `fill` once, which writes them all. BufferPool::Make is one.
using ValueMemory = std::function<absl::Cord(
    size_t size_bytes, absl::FunctionRef<void(char* data)> fill)>;

// Knowledge of a push besides the request.
struct PushContext {
  // Where the values of the answer go, which may then be kept; null: nowhere.
  // Those of a push whose gradient is applied at once are written on the way;
  // the request's bytes may lie there, too, if its two codecs take as many
  // bytes a value.
  ValueMemory memory;
  // The sender has seen that the request's bytes, as float32, are finite. It
  // could write others there at any time, so that looking again would not tell
  // more.
  bool is_finite = false;
  // The request's bytes lie in memory of their own, of their size, as long as
  // they are held: who keeps them need not copy them, unless values go there.
  bool has_own_memory = false;
};

}  // namespace muster

#endif  // PS_SERVER_SHARD_PUSH_CONTEXT_H_
