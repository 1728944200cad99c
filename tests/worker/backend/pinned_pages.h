#ifndef TESTS_WORKER_BACKEND_PINNED_PAGES_H_
#define TESTS_WORKER_BACKEND_PINNED_PAGES_H_

#include <cstdint>
#include <memory>
#include <set>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "worker/backend/device_streams.h"

namespace muster {

// The pages of this process that are pinned, for all its devices: a driver pins
// whole pages, each once. Thread-safe.
class PinnedPages {
 public:
  enum class Extent { kNone, kPart, kAll };

  static PinnedPages& OfProcess();

  // Pins nothing if one of the pages is pinned already.
  std::unique_ptr<DeviceStreams::Pin> Pin(const void* memory, int64_t bytes);
  // How much of the memory is pinned.
  Extent ExtentOf(const void* memory, int64_t bytes) const;

 private:
  struct Range {
    uintptr_t first = 0;
    uintptr_t end = 0;
  };
  class Held;

  static Range PagesOf(const void* memory, int64_t bytes);
  void Unpin(const Range& pages);

  mutable absl::Mutex mu_;
  std::set<uintptr_t> pages_ ABSL_GUARDED_BY(mu_);
};

}  // namespace muster

#endif  // TESTS_WORKER_BACKEND_PINNED_PAGES_H_
