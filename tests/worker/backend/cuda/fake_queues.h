#ifndef TESTS_WORKER_BACKEND_CUDA_FAKE_QUEUES_H_
#define TESTS_WORKER_BACKEND_CUDA_FAKE_QUEUES_H_

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <random>
#include <vector>

#include "cuda_runtime_api.h"

namespace muster {

// Streams, events and graphs as CUDA's programming guide describes them, on the
// host. Nothing that is put into a stream is done until somebody waits for it;
// then the streams' work is done in an order drawn from the seed among those
// that the events allow, and no further than needed. What lacks an event, or is
// read too early, therefore has wrong values. Not thread-safe.
//
// A capture is of one stream: CUDA lets others join it by events that were
// recorded in it, this refuses the record.
//
// Streams and events are of the device that was current when they were made,
// and a graph is of its stream's. Refuses what mixes devices.
class FakeQueues {
 public:
  using Work = std::function<void()>;
  // Whether work that is next in its stream may be done.
  using Ready = std::function<bool()>;

  explicit FakeQueues(uint64_t seed) : random_(seed) {}

  FakeQueues(const FakeQueues&) = delete;
  FakeQueues& operator=(const FakeQueues&) = delete;

  cudaStream_t CreateStream(int device);
  // Does what is in it first, as CUDA does sooner or later.
  cudaError_t DestroyStream(cudaStream_t stream);
  cudaError_t CreateEvent(cudaEvent_t* event, unsigned flags, int device);
  cudaError_t DestroyEvent(cudaEvent_t event);

  // Puts work into the stream, or into the graph that is captured from it; it
  // waits until it is ready, if that is not null.
  cudaError_t Put(cudaStream_t stream, Work work, Ready ready = nullptr);
  // Items that were put into streams so far.
  int64_t puts() const { return puts_; }
  bool IsCapturing(cudaStream_t stream) const;
  // -1 if there is no such stream.
  int DeviceOf(cudaStream_t stream) const;
  // A call was made that the capture of `stream` forbids.
  void SpoilCapture(cudaStream_t stream);

  cudaError_t Record(cudaEvent_t event, cudaStream_t stream);
  cudaError_t Wait(cudaStream_t stream, cudaEvent_t event);
  cudaError_t SynchronizeStream(cudaStream_t stream);
  cudaError_t SynchronizeEvent(cudaEvent_t event);
  // Between the host's times at which the events were come to.
  cudaError_t ElapsedTime(float* ms, cudaEvent_t start, cudaEvent_t end) const;
  // Everything in every stream.
  void SynchronizeAll();

  cudaError_t BeginCapture(cudaStream_t stream);
  cudaError_t EndCapture(cudaStream_t stream, cudaGraph_t* graph);
  cudaError_t Instantiate(cudaGraphExec_t* executable, cudaGraph_t graph);
  cudaError_t Launch(cudaGraphExec_t executable, cudaStream_t stream);
  cudaError_t DestroyGraph(cudaGraph_t graph);
  cudaError_t DestroyExecutable(cudaGraphExec_t executable);

  size_t num_streams() const { return streams_.size(); }
  size_t num_events() const { return events_.size(); }
  size_t num_graphs() const { return graphs_.size() + executables_.size(); }

 private:
  struct Event {
    int device = 0;
    // How often it was recorded, and how many of these have come.
    int64_t recorded = 0;
    int64_t done = 0;
    // Made without cudaEventDisableTiming; when the last record came.
    bool is_timed = false;
    std::chrono::steady_clock::time_point at;

    bool has_time() const { return is_timed && recorded > 0; }
  };
  // One thing in a stream: work, a record or a wait.
  struct Item {
    Work work;
    Ready ready;
    Event* recorded = nullptr;
    Event* awaited = nullptr;
    int64_t count = 0;
  };
  // Works, in order.
  struct Graph {
    int device = 0;
    std::vector<Item> items;
  };
  struct Capture {
    Graph graph;
    bool is_spoilt = false;
  };
  struct Stream {
    int device = 0;
    std::deque<Item> items;
    // Null: what is put into it is not captured.
    std::unique_ptr<Capture> capture;
  };

  Stream* Find(cudaStream_t stream) const;
  Event* Find(cudaEvent_t event) const;
  static cudaError_t Spoil(Stream* stream, cudaError_t error);
  static bool CanRun(const Item& item);
  void Append(Stream* stream, Item item);
  // Does one thing of some stream. False if nothing can be done.
  bool RunOne();
  template <typename Done>
  cudaError_t RunUntil(Done done);

  std::mt19937_64 random_;
  std::vector<std::unique_ptr<Stream>> streams_;
  std::vector<std::unique_ptr<Event>> events_;
  std::vector<std::unique_ptr<Graph>> graphs_;
  std::vector<std::unique_ptr<Graph>> executables_;
  int64_t puts_ = 0;
};

}  // namespace muster

#endif  // TESTS_WORKER_BACKEND_CUDA_FAKE_QUEUES_H_
