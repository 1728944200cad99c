#ifndef COMMON_SUMMARY_EVENT_FILE_WRITER_H_
#define COMMON_SUMMARY_EVENT_FILE_WRITER_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/base/reporter.h"
#include "common/summary/event_file.h"
#include "proto/summary.pb.h"

namespace muster {

// Writes events for TensorBoard from a thread of its own, every few seconds
// and at the end. Adding one costs no more than making its bytes. A disk that
// fails costs points of curves, never the training: it is one line when it
// begins and one when it ends. Thread-safe.
//
// The destructor writes what is left.
class EventFileWriter {
 public:
  struct Options {
    EventFile::Options file;
    // Outlives this.
    const Clock* clock = SystemClock();
    absl::Duration flush_every = absl::Seconds(2);
    absl::Duration retry_after = absl::Seconds(30);
    // The limit of events that wait for the disk; beyond it new ones are
    // dropped.
    int64_t max_waiting_bytes = 16 << 20;
    // A line for the operator, from the writing thread.
    Reporter reporter;
  };

  explicit EventFileWriter(Options options);
  ~EventFileWriter();

  EventFileWriter(const EventFileWriter&) = delete;
  EventFileWriter& operator=(const EventFileWriter&) = delete;

  // The points of `step`. Nothing happens if there are none.
  void Add(int64_t step, Summary summary);

  // The model, as it is from `step` on.
  void AddGraph(int64_t step, const GraphDef& graph);

  // The training begins, or goes back, and its next point is of `step` or
  // above: TensorBoard forgets what it has of those steps.
  void AddSessionStart(int64_t step);

  // The time of day that events are stamped with.
  absl::Time WallNow() const { return options_.file.wall_now(); }

  // Returns when what was added before has been written, or could not be.
  void Flush();

 private:
  // Events that wait for the disk.
  struct Batch {
    std::string records;
    int64_t events = 0;
    // The smallest.
    int64_t first_step = 0;
  };

  void AddEvent(Event event);
  void ThreadLoop();
  void WriteWaiting();
  // The line about an attempt; "" for none.
  std::string Note(const absl::Status& status, absl::Time now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const Options options_;
  // For the writing thread alone.
  EventFile file_;

  absl::Mutex mu_;
  Batch waiting_ ABSL_GUARDED_BY(mu_);
  bool failing_ ABSL_GUARDED_BY(mu_) = false;
  // Not before then; of the clock.
  absl::Time retry_at_ ABSL_GUARDED_BY(mu_) = absl::InfinitePast();
  int64_t dropped_ ABSL_GUARDED_BY(mu_) = 0;
  // Flushes asked for, and done.
  int64_t asked_ ABSL_GUARDED_BY(mu_) = 0;
  int64_t done_ ABSL_GUARDED_BY(mu_) = 0;
  bool stop_ ABSL_GUARDED_BY(mu_) = false;

  // The last member: it uses the others, and is joined before they go.
  std::unique_ptr<ClockThread> thread_;
};

}  // namespace muster

#endif  // COMMON_SUMMARY_EVENT_FILE_WRITER_H_
