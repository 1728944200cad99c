#ifndef COMMON_TENSOR_ALIGNED_BUFFER_H_
#define COMMON_TENSOR_ALIGNED_BUFFER_H_

#include <sys/mman.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <optional>

namespace muster {

// Owned memory: zeroed at the start, aligned to 64 bytes (a cache line
// and the widest vector); of kHugePage bytes and more to that, in pages of that
// size if the system has them: a loop over megabytes then waits for its memory
// alone, not for the page table's. Movable, not copyable.
class AlignedBuffer {
 public:
  static constexpr size_t kAlignment = 64;
  static constexpr size_t kPage = 4096;
  static constexpr size_t kHugePage = size_t{2} << 20;

  AlignedBuffer() = default;
  // Allocates `size_bytes` zero bytes. Throws std::bad_alloc if the machine has
  // no memory left, as operator new does: check sizes from outside first.
  explicit AlignedBuffer(size_t size_bytes)
      : AlignedBuffer(size_bytes, kAlignment) {}
  // The same, where the size is another's wish; nothing if there is no memory.
  static std::optional<AlignedBuffer> TryCreate(size_t size_bytes) {
    const size_t size = RoundUp(size_bytes == 0 ? 1 : size_bytes, kAlignment);
    char* const data = TryAllocate(size, kAlignment);
    if (data == nullptr) return std::nullopt;
    AlignedBuffer buffer;
    buffer.data_.reset(data);
    buffer.size_bytes_ = size_bytes;
    return buffer;
  }
  // The same as the constructor, aligned to kPage and alone in its pages: what
  // is done to pages, as a device's driver pins them, is done to no other
  // memory.
  static AlignedBuffer OfPages(size_t size_bytes) {
    return AlignedBuffer(size_bytes, kPage);
  }

  char* data() { return data_.get(); }
  const char* data() const { return data_.get(); }
  size_t size_bytes() const { return size_bytes_; }

  // The bytes as elements. REQUIRES: T needs at most kAlignment.
  template <typename T>
  T* as() {
    return reinterpret_cast<T*>(data_.get());
  }
  template <typename T>
  const T* as() const {
    return reinterpret_cast<const T*>(data_.get());
  }

 private:
  struct Free {
    void operator()(char* data) const { std::free(data); }
  };
  // A buffer of whole units of `alignment`.
  AlignedBuffer(size_t size_bytes, size_t alignment)
      : data_(Allocate(RoundUp(size_bytes == 0 ? 1 : size_bytes, alignment),
                       alignment)),
        size_bytes_(size_bytes) {}

  static size_t RoundUp(size_t size, size_t alignment) {
    return (size + alignment - 1) / alignment * alignment;
  }
  static char* Allocate(size_t size, size_t alignment) {
    char* const data = TryAllocate(size, alignment);
    if (data == nullptr) throw std::bad_alloc();
    return data;
  }
  static char* TryAllocate(size_t size, size_t alignment) {
    const bool is_large = size >= kHugePage;
    void* data = nullptr;
    if (posix_memalign(&data, is_large ? kHugePage : alignment, size) != 0) {
      return nullptr;
    }
    // Before they are touched; not what is less than a page at the end. Where
    // there are no such pages, nothing changes.
    if (is_large) madvise(data, size / kHugePage * kHugePage, MADV_HUGEPAGE);
    std::memset(data, 0, size);
    return static_cast<char*>(data);
  }

  std::unique_ptr<char, Free> data_;
  size_t size_bytes_ = 0;
};

}  // namespace muster

#endif  // COMMON_TENSOR_ALIGNED_BUFFER_H_
