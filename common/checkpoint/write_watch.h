#ifndef COMMON_CHECKPOINT_WRITE_WATCH_H_
#define COMMON_CHECKPOINT_WRITE_WATCH_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/base/reporter.h"
#include "common/checkpoint/slow_writes.h"

namespace muster {

// Says from a thread of its own that writes and reads take long, as a call
// that hangs in the kernel says nothing: SlowWrites has when. Thread-safe.
//
//   const absl::Status saved = watch.Watch("save of step 400", [&] {
//     return Save();
//   });
class WriteWatch {
 public:
  struct Options {
    // Outlives the watch.
    const Clock* clock = SystemClock();
    // Beyond it `report` gets SlowWrites::Due::overdue.
    absl::Duration limit = absl::InfiniteDuration();
    Reporter reporter;
    // May be null. Called from the watch's thread.
    std::function<void(const std::string& overdue)> report;
  };

  explicit WriteWatch(Options options);
  ~WriteWatch();

  // Returns what `write` does.
  template <typename Write>
  auto Watch(std::string what, const Write& write) {
    const Watched watched(this, std::move(what), SlowWrites::Kind::kWrite);
    return write();
  }
  // Watches a read, which has no limit.
  template <typename Read>
  auto WatchRead(std::string what, const Read& read) {
    const Watched watched(this, std::move(what), SlowWrites::Kind::kRead);
    return read();
  }

 private:
  // A write, while it lives.
  class Watched {
   public:
    Watched(WriteWatch* watch, std::string what, SlowWrites::Kind kind)
        : watch_(watch), number_(watch->Begin(std::move(what), kind)) {}
    ~Watched() { watch_->End(number_); }
    Watched(const Watched&) = delete;
    Watched& operator=(const Watched&) = delete;

   private:
    WriteWatch* const watch_;
    const int64_t number_;
  };

  int64_t Begin(std::string what, SlowWrites::Kind kind);
  void End(int64_t number);
  void ThreadLoop();

  const Options options_;

  absl::Mutex mu_;
  SlowWrites writes_ ABSL_GUARDED_BY(mu_);
  // Since the thread last looked.
  bool has_changed_ ABSL_GUARDED_BY(mu_) = false;
  bool stop_ ABSL_GUARDED_BY(mu_) = false;

  // Last: it uses all the others.
  std::unique_ptr<ClockThread> thread_;
};

}  // namespace muster

#endif  // COMMON_CHECKPOINT_WRITE_WATCH_H_
