#ifndef WORKER_INPUT_STREAM_ENDLESS_RECORDS_H_
#define WORKER_INPUT_STREAM_ENDLESS_RECORDS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "worker/input/stream/example_stream.h"

namespace muster {

// A record in the order in which it is trained on.
struct OrderedRecord {
  StreamRecord record;
  // The pass, from 0, and its place in that, from 0.
  int64_t epoch = 0;
  int64_t place = 0;
};

// The records of a stream, pass after pass without end. Each pass goes through
// a buffer, from which the next one is chosen and which the stream fills again:
// a record comes at most `buffer` places too soon. The order is a function of
// (seed, epoch) and of the stream, so that going on from a place leads to the
// same records. Not thread-safe.
class EndlessRecords {
 public:
  // `buffer`: records; 0 and 1 leave the order as it is.
  EndlessRecords(std::unique_ptr<ExampleStream> stream, uint64_t seed,
                 int64_t buffer);

  const ExampleStream& stream() const { return *stream_; }

  // Goes to the beginning of a pass; without it, that is of pass 0. Errors:
  // Next's.
  absl::Status Begin(int64_t epoch);

  // The next record, in `*next`, whose memory is used again. Errors: those of
  // the stream; InvalidArgument (a pass without records, too little memory for
  // the buffer).
  absl::Status Next(OrderedRecord* next);

  // Ends a call that is under way, which may fill the buffer, and all later
  // ones, as stopped. From any thread.
  void Stop() { stopped_.store(true, std::memory_order_relaxed); }

  // The record that `ahead` further calls of Next, and one, will return.
  // Errors: Next's.
  absl::StatusOr<const OrderedRecord*> Peek(size_t ahead);

 private:
  // The next record of this pass; false at its end.
  absl::StatusOr<bool> NextInPass(OrderedRecord* next);
  absl::Status BeginPass(int64_t epoch);
  absl::Status Read(OrderedRecord* next);
  // Reads from the stream into a place of the buffer; false at the end.
  absl::StatusOr<bool> Refill(StreamRecord* record);

  const std::unique_ptr<ExampleStream> stream_;
  const uint64_t seed_;
  // The most records that are held.
  const size_t capacity_;

  int64_t epoch_ = 0;
  int64_t place_ = 0;
  bool begun_ = false;
  // Grows up to capacity_; the first `held_` hold a record.
  std::vector<StreamRecord> buffer_;
  size_t held_ = 0;
  // Of the buffer's records, and as many as it was checked for.
  int64_t bytes_ = 0;
  int64_t checked_bytes_ = 0;
  // Read already, for Peek.
  std::deque<OrderedRecord> ahead_;
  std::atomic<bool> stopped_{false};
};

}  // namespace muster

#endif  // WORKER_INPUT_STREAM_ENDLESS_RECORDS_H_
