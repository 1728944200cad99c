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

cudaStream_t FakeQueues::CreateStream() {
  return Own<cudaStream_t>(&streams_, std::make_unique<Stream>());
}

cudaError_t FakeQueues::DestroyStream(cudaStream_t stream) {
  const cudaError_t error = SynchronizeStream(stream);
  if (error != cudaSuccess) return error;
  return Destroy(&streams_, stream);
}

cudaEvent_t FakeQueues::CreateEvent() {
  return Own<cudaEvent_t>(&events_, std::make_unique<Event>());
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

void FakeQueues::SpoilCapture(cudaStream_t origin) {
  Stream* const found = Find(origin);
  if (found != nullptr && found->capture != nullptr) {
    found->capture->is_spoilt = true;
  }
}

int FakeQueues::AddNode(Stream* stream, Node node) {
  node.after = stream->nodes;
  std::vector<Node>& nodes = stream->capture->graph.nodes;
  nodes.push_back(std::move(node));
  const int index = static_cast<int>(nodes.size()) - 1;
  stream->nodes = {index};
  return index;
}

void FakeQueues::Append(Stream* stream, Item item) {
  stream->items.push_back(std::move(item));
  ++puts_;
}

cudaError_t FakeQueues::Put(cudaStream_t stream, Work work, Ready ready) {
  Stream* const to = Find(stream);
  if (to == nullptr) return cudaErrorInvalidResourceHandle;
  if (to->capture != nullptr) {
    Node node;
    node.work = std::move(work);
    node.ready = std::move(ready);
    AddNode(to, std::move(node));
    return cudaSuccess;
  }
  Item item;
  item.work = std::move(work);
  item.ready = std::move(ready);
  Append(to, std::move(item));
  return cudaSuccess;
}

cudaError_t FakeQueues::Record(cudaEvent_t event, cudaStream_t stream,
                               unsigned flags) {
  Event* const recorded = Find(event);
  Stream* const in = Find(stream);
  if (recorded == nullptr || in == nullptr) {
    return cudaErrorInvalidResourceHandle;
  }
  const bool external = flags == cudaEventRecordExternal;
  if (external && in->capture == nullptr) return cudaErrorInvalidValue;
  if (external) {
    Node node;
    node.event = recorded;
    AddNode(in, std::move(node));
    return cudaSuccess;
  }
  recorded->capture = in->capture;
  recorded->nodes = in->nodes;
  if (in->capture != nullptr) return cudaSuccess;
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
  if (awaited->capture != nullptr) {
    if (in->capture != nullptr && in->capture != awaited->capture) {
      return cudaErrorStreamCaptureMerge;
    }
    in->capture = awaited->capture;
    in->nodes.insert(in->nodes.end(), awaited->nodes.begin(),
                     awaited->nodes.end());
    return cudaSuccess;
  }
  if (in->capture != nullptr) {
    in->capture->is_spoilt = true;
    return cudaErrorStreamCaptureIsolation;
  }
  // Never recorded: nothing to wait for.
  if (awaited->recorded == 0) return cudaSuccess;
  Item item;
  item.awaited = awaited;
  item.count = awaited->recorded;
  Append(in, std::move(item));
  return cudaSuccess;
}

std::vector<int> FakeQueues::ReadyNodes(const Run& run) {
  const std::vector<Node>& nodes = run.graph->nodes;
  std::vector<int> ready;
  for (size_t i = 0; i < nodes.size(); ++i) {
    const bool is_ready =
        !run.done[i] &&
        std::all_of(nodes[i].after.begin(), nodes[i].after.end(),
                    [&](int before) { return run.done[before]; }) &&
        (nodes[i].ready == nullptr || nodes[i].ready());
    if (is_ready) ready.push_back(static_cast<int>(i));
  }
  return ready;
}

bool FakeQueues::CanRun(const Item& item) {
  if (item.run != nullptr && item.run->num_done < item.run->done.size()) {
    return !ReadyNodes(*item.run).empty();
  }
  return (item.awaited == nullptr || item.awaited->done >= item.count) &&
         (item.ready == nullptr || item.ready());
}

void FakeQueues::RunNode(Run* run) {
  const std::vector<Node>& nodes = run->graph->nodes;
  const std::vector<int> ready = ReadyNodes(*run);
  const int chosen = ready[random_() % ready.size()];
  if (nodes[chosen].work != nullptr) nodes[chosen].work();
  if (nodes[chosen].event != nullptr) {
    Event* const event = nodes[chosen].event;
    event->done = std::max(event->done, run->records[chosen]);
  }
  run->done[chosen] = true;
  ++run->num_done;
}

void FakeQueues::RunFront(Stream* stream) {
  Item& item = stream->items.front();
  if (item.run != nullptr) {
    if (item.run->num_done < item.run->done.size()) RunNode(item.run.get());
    if (item.run->num_done < item.run->done.size()) return;
  }
  if (item.work != nullptr) item.work();
  if (item.recorded != nullptr) {
    item.recorded->done = std::max(item.recorded->done, item.count);
  }
  stream->items.pop_front();
}

bool FakeQueues::RunOne() {
  std::vector<Stream*> ready;
  for (const auto& stream : streams_) {
    if (!stream->items.empty() && CanRun(stream->items.front())) {
      ready.push_back(stream.get());
    }
  }
  if (ready.empty()) return false;
  RunFront(ready[random_() % ready.size()]);
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
    found->capture->is_spoilt = true;
    return cudaErrorStreamCaptureUnsupported;
  }
  return RunUntil([&] { return found->items.empty(); });
}

cudaError_t FakeQueues::SynchronizeEvent(cudaEvent_t event) {
  Event* const found = Find(event);
  if (found == nullptr) return cudaErrorInvalidResourceHandle;
  if (found->capture != nullptr) {
    found->capture->is_spoilt = true;
    return cudaErrorCapturedEvent;
  }
  return RunUntil([&] { return found->done >= found->recorded; });
}

void FakeQueues::SynchronizeAll() {
  while (RunOne()) {
  }
}

cudaError_t FakeQueues::BeginCapture(cudaStream_t stream) {
  Stream* const origin = Find(stream);
  if (origin == nullptr) return cudaErrorInvalidResourceHandle;
  if (origin->capture != nullptr) return cudaErrorIllegalState;
  captures_.push_back(std::make_unique<Capture>());
  captures_.back()->origin = origin;
  origin->capture = captures_.back().get();
  origin->nodes.clear();
  return cudaSuccess;
}

// Whether all that was captured comes before the end of the first stream.
bool FakeQueues::IsJoined(const Capture& capture) {
  const std::vector<Node>& nodes = capture.graph.nodes;
  std::vector<bool> before(nodes.size(), false);
  std::vector<int> open = capture.origin->nodes;
  while (!open.empty()) {
    const int node = open.back();
    open.pop_back();
    if (before[node]) continue;
    before[node] = true;
    open.insert(open.end(), nodes[node].after.begin(), nodes[node].after.end());
  }
  return std::all_of(before.begin(), before.end(), [](bool b) { return b; });
}

// Streams and events of the capture are as before it.
void FakeQueues::Leave(const Capture* capture) {
  for (const auto& stream : streams_) {
    if (stream->capture != capture) continue;
    stream->capture = nullptr;
    stream->nodes.clear();
  }
  for (const auto& event : events_) {
    if (event->capture != capture) continue;
    event->capture = nullptr;
    event->nodes.clear();
  }
}

cudaError_t FakeQueues::EndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  Stream* const origin = Find(stream);
  if (origin == nullptr) return cudaErrorInvalidResourceHandle;
  const auto found = std::find_if(
      captures_.begin(), captures_.end(),
      [&](const auto& capture) { return capture->origin == origin; });
  if (found == captures_.end()) return cudaErrorIllegalState;
  const std::unique_ptr<Capture> capture = std::move(*found);
  captures_.erase(found);
  const bool is_joined = IsJoined(*capture);
  Leave(capture.get());
  if (capture->is_spoilt) return cudaErrorStreamCaptureInvalidated;
  if (!is_joined) return cudaErrorStreamCaptureUnjoined;
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
  if (found == executables_.end() || to == nullptr) {
    return cudaErrorInvalidResourceHandle;
  }
  if (to->capture != nullptr) return cudaErrorStreamCaptureUnsupported;
  auto run = std::make_unique<Run>();
  run->graph = found->get();
  run->done.resize(run->graph->nodes.size(), false);
  run->records.resize(run->graph->nodes.size(), 0);
  for (size_t i = 0; i < run->records.size(); ++i) {
    Event* const event = run->graph->nodes[i].event;
    if (event != nullptr) run->records[i] = ++event->recorded;
  }
  Item item;
  item.run = std::move(run);
  Append(to, std::move(item));
  return cudaSuccess;
}

cudaError_t FakeQueues::DestroyGraph(cudaGraph_t graph) {
  return Destroy(&graphs_, graph);
}

// A launch that is still on its way goes on, as with CUDA.
cudaError_t FakeQueues::DestroyExecutable(cudaGraphExec_t executable) {
  SynchronizeAll();
  return Destroy(&executables_, executable);
}

}  // namespace muster
