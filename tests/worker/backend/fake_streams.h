#ifndef TESTS_WORKER_BACKEND_FAKE_STREAMS_H_
#define TESTS_WORKER_BACKEND_FAKE_STREAMS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <random>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/tensor/aligned_buffer.h"
#include "worker/backend/device_streams.h"

namespace muster {

// A device whose memory is the host's. What is put into a stream waits there
// and is done only as far as somebody awaits it, in a random order that streams
// and events allow: where an event is missing, values are wrong.
//
// A broken rule of DeviceStreams is an error: a thread that did not call
// MakeCurrent, memory that is not of the device or was freed (and is then full
// of NaN), host memory that is pinned in mid-page or copied while it is in
// part, an event that was never recorded, in a capture all but primitives. An
// error in a stream is that of every call from then on.
//
// A piece of work takes the device kWorkTime, and nothing else takes any.
class FakeStreams : public DeviceStreams {
 public:
  using Work = std::function<absl::Status()>;
  // Less than the host takes to do it: nothing ends later than the host sees.
  static constexpr absl::Duration kWorkTime = absl::Nanoseconds(4);

  explicit FakeStreams(uint64_t seed);
  ~FakeStreams() override;

  FakeStreams(const FakeStreams&) = delete;
  FakeStreams& operator=(const FakeStreams&) = delete;

  absl::Status MakeCurrent() override;
  absl::StatusOr<std::unique_ptr<Buffer>> Allocate(
      int64_t bytes, absl::string_view what) override;
  absl::StatusOr<std::unique_ptr<Pin>> PinHost(void* memory,
                                               int64_t bytes) override;
  absl::StatusOr<std::unique_ptr<Event>> CreateEvent() override;
  absl::StatusOr<std::unique_ptr<Event>> CreateTimedEvent() override;
  absl::Status CopyToDevice(void* device, const void* host,
                            int64_t bytes) override;
  absl::Status CopyToHost(void* host, const void* device,
                          int64_t bytes) override;
  absl::Status Record(Event* event, Stream stream) override;
  absl::Status Wait(Stream stream, const Event& event) override;
  absl::Status Await(const Event& event) override;
  absl::StatusOr<absl::Duration> ElapsedTime(const Event& from,
                                             const Event& to) override;
  absl::Status BeginCapture() override;
  absl::StatusOr<std::unique_ptr<Graph>> EndCapture() override;
  absl::Status Launch(const Graph& graph) override;
  absl::Status Synchronize() override;

  // As a primitive does: puts `work` into kCompute.
  absl::Status Compute(Work work);
  // Puts what is no copy into any stream.
  absl::Status PutWork(Stream stream, Work work);
  // InvalidArgument unless that is memory of this device.
  absl::Status CheckDevice(const void* memory, int64_t bytes) const;

  // How often, of all choices, the next work is this stream's: 0 if only where
  // no other has any.
  void SetWeight(Stream stream, int weight);

  // The `n`th call from now, counted from 1, fails and does nothing; 0: none.
  void FailCall(int n) { calls_until_failure_ = n; }
  // The `n`th work that is done from now fails, and with it the device.
  void FailWork(int n) { works_until_failure_ = n; }

  // From now on no capture comes to a good end.
  void FailCaptures() { fails_captures_ = true; }

  // Since the start.
  int launches() const { return launches_; }
  // Copies that were put into kToDevice.
  int64_t copies_to_device() const { return copies_to_device_; }
  // Works of kCompute that were done, also those of graphs.
  int64_t computed() const { return computed_; }
  // Timed events that were recorded.
  int64_t timed_records() const { return timed_records_; }

 private:
  static constexpr int kStreams = 3;
  struct EventState;
  struct Op;
  struct Capture;
  class FakeBuffer;
  class FakeEvent;
  class FakeGraph;
  struct Block {
    AlignedBuffer memory;
    int64_t bytes = 0;
    bool is_live = true;
  };

  absl::Status BeginCall(absl::string_view name);
  // For a call that may not be in a capture.
  absl::Status BeginCallOutside(absl::string_view name);
  void Put(Stream stream, Op op);
  void PutWorkInto(Stream stream, Work work);
  absl::Status PutCopy(Stream stream, void* to, const void* from,
                       int64_t bytes);
  // Ends when nothing can be done any more.
  absl::Status RunUntil(const std::function<bool()>& is_reached);
  bool RunOne();
  // A stream whose first op may be done; null: there is none.
  std::deque<Op>* Choose();
  void Run(const Op& op);
  void Free(char* data);

  std::mt19937_64 random_;
  std::array<int, kStreams> weights_;
  std::array<std::deque<Op>, kStreams> queues_;
  std::unique_ptr<Capture> capture_;
  // Also of what was freed: late work finds it poisoned.
  std::vector<Block> blocks_;
  absl::Status failure_;
  int calls_until_failure_ = 0;
  int works_until_failure_ = 0;
  bool fails_captures_ = false;
  int launches_ = 0;
  int64_t copies_to_device_ = 0;
  int64_t computed_ = 0;
  int64_t timed_records_ = 0;
  // The device's time.
  absl::Duration now_;
};

}  // namespace muster

#endif  // TESTS_WORKER_BACKEND_FAKE_STREAMS_H_
