#include "common/tensor/buffer_pool.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "common/base/cord_bytes.h"
#include "common/tensor/aligned_buffer.h"

namespace muster {
namespace {

// Small ones share a page-sized class; larger ones go up in four steps for each
// power of two, so that at most a quarter is not used: a gradient that is kept
// for its round must not take twice its bytes.
size_t SizeClass(size_t size_bytes) {
  size_t power = 4096;
  while (power < size_bytes) power *= 2;
  const size_t step = std::max<size_t>(power / 8, 4096);
  return (size_bytes + step - 1) / step * step;
}

}  // namespace

// The unused buffers by size.
class BufferPool::Shelf {
 public:
  explicit Shelf(size_t max_idle_bytes) : max_idle_bytes_(max_idle_bytes) {}

  AlignedBuffer Take(size_t size_class) {
    {
      absl::MutexLock lock(&mu_);
      const auto it = idle_.find(size_class);
      if (it != idle_.end() && !it->second.empty()) {
        AlignedBuffer buffer = std::move(it->second.back());
        it->second.pop_back();
        idle_bytes_ -= size_class;
        return buffer;
      }
    }
    return AlignedBuffer(size_class);
  }

  void PutBack(AlignedBuffer buffer) {
    absl::MutexLock lock(&mu_);
    const size_t size_class = buffer.size_bytes();
    if (idle_bytes_ + size_class > max_idle_bytes_) return;
    idle_bytes_ += size_class;
    idle_[size_class].push_back(std::move(buffer));
  }

  size_t idle_bytes() const {
    absl::MutexLock lock(&mu_);
    return idle_bytes_;
  }

 private:
  const size_t max_idle_bytes_;
  mutable absl::Mutex mu_;
  std::map<size_t, std::vector<AlignedBuffer>> idle_ ABSL_GUARDED_BY(mu_);
  size_t idle_bytes_ ABSL_GUARDED_BY(mu_) = 0;
};

BufferPool::BufferPool(size_t max_idle_bytes)
    : shelf_(std::make_shared<Shelf>(max_idle_bytes)) {}

absl::Cord BufferPool::Make(size_t size_bytes,
                            absl::FunctionRef<void(char* data)> fill) {
  if (size_bytes == 0) return absl::Cord();
  AlignedBuffer buffer = shelf_->Take(SizeClass(size_bytes));
  fill(buffer.data());
  const absl::string_view bytes(buffer.data(), size_bytes);
  return absl::MakeCordFromExternal(
      bytes, [shelf = shelf_, buffer = std::move(buffer)]() mutable {
        shelf->PutBack(std::move(buffer));
      });
}

std::shared_ptr<char> BufferPool::Take(size_t size_bytes) {
  const auto buffer =
      std::make_shared<AlignedBuffer>(shelf_->Take(SizeClass(size_bytes)));
  return {buffer->data(), [shelf = shelf_, buffer](char*) {
            shelf->PutBack(std::move(*buffer));
          }};
}

absl::Cord BufferPool::Copy(const absl::Cord& bytes) {
  return Make(bytes.size(), [&bytes](char* data) { CopyCord(bytes, data); });
}

size_t BufferPool::idle_bytes() const { return shelf_->idle_bytes(); }

}  // namespace muster
