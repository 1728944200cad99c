#ifndef COMMON_TENSOR_BUFFER_POOL_H_
#define COMMON_TENSOR_BUFFER_POOL_H_

#include <cstddef>
#include <memory>

#include "absl/functional/function_ref.h"
#include "absl/strings/cord.h"

namespace muster {

// Memory for replies that is used again: faulting in fresh pages costs 8.5 ms
// for 13 MB, more than the whole push and pull. A buffer goes back to the pool
// when the last Cord that refers to it is gone, on whatever thread that is;
// also after the pool itself was destroyed. Thread-safe.
class BufferPool {
 public:
  // Keeps at most `max_idle_bytes` of unused buffers.
  explicit BufferPool(size_t max_idle_bytes = size_t{256} << 20);

  // Returns a Cord of `size_bytes` whose bytes `fill` has written; they are
  // undefined before. `fill` is called once, unless the size is 0.
  absl::Cord Make(size_t size_bytes, absl::FunctionRef<void(char* data)> fill);

  // Memory of `size_bytes`, 1 or more, for who fills it little by little; it
  // goes back to the pool when nobody holds it.
  std::shared_ptr<char> Take(size_t size_bytes);

  // As Make, with a copy of `bytes`.
  absl::Cord Copy(const absl::Cord& bytes);

  // Bytes that wait to be used again.
  size_t idle_bytes() const;

 private:
  class Shelf;
  // Shared with the Cords that were made and may outlive the pool.
  const std::shared_ptr<Shelf> shelf_;
};

}  // namespace muster

#endif  // COMMON_TENSOR_BUFFER_POOL_H_
