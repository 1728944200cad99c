#include "tests/worker/backend/pinned_pages.h"

#include "common/tensor/aligned_buffer.h"

namespace muster {

class PinnedPages::Held : public DeviceStreams::Pin {
 public:
  Held(PinnedPages* owner, const Range& pages) : owner_(owner), pages_(pages) {}
  ~Held() override { owner_->Unpin(pages_); }

 private:
  PinnedPages* const owner_;
  const Range pages_;
};

PinnedPages& PinnedPages::OfProcess() {
  static auto* const pages = new PinnedPages;
  return *pages;
}

PinnedPages::Range PinnedPages::PagesOf(const void* memory, int64_t bytes) {
  const auto begin = reinterpret_cast<uintptr_t>(memory);
  const uintptr_t last = begin + static_cast<uintptr_t>(bytes);
  return {begin / AlignedBuffer::kPage,
          (last + AlignedBuffer::kPage - 1) / AlignedBuffer::kPage};
}

std::unique_ptr<DeviceStreams::Pin> PinnedPages::Pin(const void* memory,
                                                     int64_t bytes) {
  Range pages;
  if (bytes > 0 && ExtentOf(memory, bytes) == Extent::kNone) {
    pages = PagesOf(memory, bytes);
  }
  const absl::MutexLock lock(&mu_);
  for (uintptr_t page = pages.first; page < pages.end; ++page) {
    pages_.insert(page);
  }
  return std::make_unique<Held>(this, pages);
}

void PinnedPages::Unpin(const Range& pages) {
  const absl::MutexLock lock(&mu_);
  for (uintptr_t page = pages.first; page < pages.end; ++page) {
    pages_.erase(page);
  }
}

PinnedPages::Extent PinnedPages::ExtentOf(const void* memory,
                                          int64_t bytes) const {
  const Range pages = PagesOf(memory, bytes);
  uintptr_t pinned = 0;
  const absl::MutexLock lock(&mu_);
  for (uintptr_t page = pages.first; page < pages.end; ++page) {
    pinned += pages_.count(page);
  }
  if (pinned == 0) return Extent::kNone;
  return pinned == pages.end - pages.first ? Extent::kAll : Extent::kPart;
}

}  // namespace muster
