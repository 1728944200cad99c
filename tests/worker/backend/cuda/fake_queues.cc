#include "tests/worker/backend/cuda/fake_queues.h"

#include <algorithm>
#include <utility>

namespace muster {
namespace {

template <typename T, typename Handle>
auto FindOwned(const std::vector<std::unique_ptr<T>>& owned, Handle handle) {
  return std::find_if(owned.begin(), owned.end(), [&](const auto& one) {
    return reinterpret_cast<Handle>(one.get()) == handle;
  });
}

template <typename T, typename Handle>
cudaError_t Destroy(std::vector<std::unique_ptr<T>>* owned, Handle handle) {
  const auto found = FindOwned(*owned, handle);
  if (found == owned->end()) return cudaErrorInvalidResourceHandle;
  owned->erase(found);
  return cudaSuccess;
}

template <typename Handle, typename T>
Handle Own(std::vector<std::unique_ptr<T>>* owned, std::unique_ptr<T> one) {
  owned->push_back(std::move(one));
  return reinterpret_cast<Handle>(owned->back().get());
}

}  // namespace

FakeQueues::Stream* FakeQueues::Find(cudaStream_t stream) const {
  const auto found = FindOwned(streams_, stream);
  return found == streams_.end() ? nullptr : found->get();
}

FakeQueues::Event* FakeQueues::Find(cudaEvent_t event) const {
  const auto found = FindOwned(events_, event);
  return found == events_.end() ? nullptr : found->get();
}

cudaStream_t FakeQueues::CreateStream(int device) {
  auto made = std::make_unique<Stream>();
  made->device = device;
  return Own<cudaStream_t>(&streams_, std::move(made));
}

int FakeQueues::DeviceOf(cudaStream_t stream) const {
  const Stream* const found = Find(stream);
  return found == nullptr ? -1 : found->device;
}

cudaError_t FakeQueues::DestroyStream(cudaStream_t stream) {
  const cudaError_t error = SynchronizeStream(stream);
  if (error != cudaSuccess) return error;
  return Destroy(&streams_, stream);
}

cudaError_t FakeQueues::CreateEvent(cudaEvent_t* event, unsigned flags,
                                    int device) {
  constexpr unsigned kKnown = cudaEventBlockingSync | cudaEventDisableTiming;
  if ((flags & ~kKnown) != 0) return cudaErrorInvalidValue;
  auto made = std::make_unique<Event>();
  made->device = device;
  made->is_timed = (flags & cudaEventDisableTiming) == 0;
  *event = Own<cudaEvent_t>(&events_, std::move(made));
  return cudaSuccess;
}

// Streams that wait for it, or are to record it, must be done with it first.
cudaError_t FakeQueues::DestroyEvent(cudaEvent_t event) {
  if (Find(event) == nullptr) return cudaErrorInvalidResourceHandle;
  SynchronizeAll();
  return Destroy(&events_, event);
}

bool FakeQueues::IsCapturing(cudaStream_t stream) const {
  const Stream* const found = Find(stream);
  return found != nullptr && found->capture != nullptr;
}

void FakeQueues::SpoilCapture(cudaStream_t stream) {
  Stream* const found = Find(stream);
  if (found != nullptr && found->capture != nullptr) {
    found->capture->is_spoilt = true;
  }
}

// `error` is what a call returns that the stream's capture forbids.
cudaError_t FakeQueues::Spoil(Stream* stream, cudaError_t error) {
  stream->capture->is_spoilt = true;
  return error;
}

void FakeQueues::Append(Stream* stream, Item item) {
  stream->items.push_back(std::move(item));
  ++puts_;
}

cudaError_t FakeQueues::Put(cudaStream_t stream, Work work, Ready ready) {
  Stream* const to = Find(stream);
  if (to == nullptr) return cudaErrorInvalidResourceHandle;
  Item item;
  item.work = std::move(work);
  item.ready = std::move(ready);
  if (to->capture != nullptr) {
    to->capture->graph.items.push_back(std::move(item));
  } else {
    Append(to, std::move(item));
  }
  return cudaSuccess;
}

cudaError_t FakeQueues::Record(cudaEvent_t event, cudaStream_t stream) {
  Event* const recorded = Find(event);
  Stream* const in = Find(stream);
  if (recorded == nullptr || in == nullptr || recorded->device != in->device) {
    return cudaErrorInvalidResourceHandle;
  }
  if (in->capture != nullptr) {
    return Spoil(in, cudaErrorStreamCaptureUnsupported);
  }
  Item item;
  item.recorded = recorded;
  item.count = ++recorded->recorded;
  Append(in, std::move(item));
  return cudaSuccess;
}

cudaError_t FakeQueues::Wait(cudaStream_t stream, cudaEvent_t event) {
  Event* const awaited = Find(event);
  Stream* const in = Find(stream);
  if (awaited == nullptr || in == nullptr) {
    return cudaErrorInvalidResourceHandle;
  }
  if (in->capture != nullptr) {
    return Spoil(in, cudaErrorStreamCaptureIsolation);
  }
  // Never recorded: nothing to wait for.
  if (awaited->recorded == 0) return cudaSuccess;
  Item item;
  item.awaited = awaited;
  item.count = awaited->recorded;
  Append(in, std::move(item));
  return cudaSuccess;
}

bool FakeQueues::CanRun(const Item& item) {
  return (item.awaited == nullptr || item.awaited->done >= item.count) &&
         (item.ready == nullptr || item.ready());
}

bool FakeQueues::RunOne() {
  std::vector<Stream*> ready;
  for (const auto& stream : streams_) {
    if (!stream->items.empty() && CanRun(stream->items.front())) {
      ready.push_back(stream.get());
    }
  }
  if (ready.empty()) return false;
  std::deque<Item>& items = ready[random_() % ready.size()]->items;
  const Item item = std::move(items.front());
  items.pop_front();
  if (item.work != nullptr) item.work();
  if (item.recorded != nullptr) {
    item.recorded->done = std::max(item.recorded->done, item.count);
    item.recorded->at = std::chrono::steady_clock::now();
  }
  return true;
}

template <typename Done>
cudaError_t FakeQueues::RunUntil(Done done) {
  while (!done()) {
    // A stream waits for what nobody will record: a real device would hang.
    if (!RunOne()) return cudaErrorLaunchTimeout;
  }
  return cudaSuccess;
}

cudaError_t FakeQueues::SynchronizeStream(cudaStream_t stream) {
  Stream* const found = Find(stream);
  if (found == nullptr) return cudaErrorInvalidResourceHandle;
  if (found->capture != nullptr) {
    return Spoil(found, cudaErrorStreamCaptureUnsupported);
  }
  return RunUntil([&] { return found->items.empty(); });
}

cudaError_t FakeQueues::SynchronizeEvent(cudaEvent_t event) {
  Event* const found = Find(event);
  if (found == nullptr) return cudaErrorInvalidResourceHandle;
  return RunUntil([&] { return found->done >= found->recorded; });
}

cudaError_t FakeQueues::ElapsedTime(float* ms, cudaEvent_t start,
                                    cudaEvent_t end) const {
  const Event* const from = Find(start);
  const Event* const to = Find(end);
  if (from == nullptr || to == nullptr || from->device != to->device ||
      !from->has_time() || !to->has_time()) {
    return cudaErrorInvalidResourceHandle;
  }
  if (from->done < from->recorded || to->done < to->recorded) {
    return cudaErrorNotReady;
  }
  *ms = std::chrono::duration<float, std::milli>(to->at - from->at).count();
  return cudaSuccess;
}

void FakeQueues::SynchronizeAll() {
  while (RunOne()) {
  }
}

cudaError_t FakeQueues::BeginCapture(cudaStream_t stream) {
  Stream* const found = Find(stream);
  if (found == nullptr) return cudaErrorInvalidResourceHandle;
  if (found->capture != nullptr) return cudaErrorIllegalState;
  found->capture = std::make_unique<Capture>();
  found->capture->graph.device = found->device;
  return cudaSuccess;
}

cudaError_t FakeQueues::EndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  Stream* const found = Find(stream);
  if (found == nullptr) return cudaErrorInvalidResourceHandle;
  if (found->capture == nullptr) return cudaErrorIllegalState;
  const std::unique_ptr<Capture> capture = std::move(found->capture);
  if (capture->is_spoilt) return cudaErrorStreamCaptureInvalidated;
  *graph = Own<cudaGraph_t>(&graphs_,
                            std::make_unique<Graph>(std::move(capture->graph)));
  return cudaSuccess;
}

cudaError_t FakeQueues::Instantiate(cudaGraphExec_t* executable,
                                    cudaGraph_t graph) {
  const auto found = FindOwned(graphs_, graph);
  if (found == graphs_.end()) return cudaErrorInvalidResourceHandle;
  *executable =
      Own<cudaGraphExec_t>(&executables_, std::make_unique<Graph>(**found));
  return cudaSuccess;
}

cudaError_t FakeQueues::Launch(cudaGraphExec_t executable,
                               cudaStream_t stream) {
  const auto found = FindOwned(executables_, executable);
  Stream* const to = Find(stream);
  if (found == executables_.end() || to == nullptr ||
      (*found)->device != to->device) {
    return cudaErrorInvalidResourceHandle;
  }
  // CUDA would make it a part of the graph.
  if (to->capture != nullptr) {
    return Spoil(to, cudaErrorStreamCaptureUnsupported);
  }
  for (const Item& item : (*found)->items) Append(to, item);
  return cudaSuccess;
}

cudaError_t FakeQueues::DestroyGraph(cudaGraph_t graph) {
  return Destroy(&graphs_, graph);
}

// A launch that is still on its way goes on, as with CUDA.
cudaError_t FakeQueues::DestroyExecutable(cudaGraphExec_t executable) {
  return Destroy(&executables_, executable);
}

}  // namespace muster
