#ifndef PS_SERVER_SHARD_VALUE_MEMORY_H_
#define PS_SERVER_SHARD_VALUE_MEMORY_H_

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

}  // namespace muster

#endif  // PS_SERVER_SHARD_VALUE_MEMORY_H_
