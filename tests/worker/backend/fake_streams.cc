#include "tests/worker/backend/fake_streams.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "tests/testing/allocation_pause.h"
#include "tests/worker/backend/pinned_pages.h"

namespace muster {
namespace {

// A quiet NaN in float and double.
constexpr int kPoison = 0xFF;
constexpr int kWeights[] = {1, 8, 64};

using Stream = DeviceStreams::Stream;
using Extent = PinnedPages::Extent;

size_t IndexOf(Stream stream) { return static_cast<size_t>(stream); }

// Whose MakeCurrent this thread called last.
thread_local const FakeStreams* current_device = nullptr;

}  // namespace

// An event's records are counted: the `n`th one has come if `come` >= n.
struct FakeStreams::EventState {
  EventUse use = EventUse::kStreams;
  int64_t recorded = 0;
  int64_t come = 0;
  // If the last record is in a capture: its number, and after which of its ops.
  int capture = 0;
  Stream stream = Stream::kCompute;
  size_t position = 0;
};

// What waits in a stream, or is part of a graph.
struct FakeStreams::Op {
  enum class Kind { kWork, kRecord, kWait, kJoin, kLaunch };

  Kind kind = Kind::kWork;
  Work work;
  // kRecord and kWait: which, and its how manyth record.
  std::shared_ptr<EventState> event;
  int64_t ticket = 0;
  // kJoin, in graphs: when so many ops of that stream are done.
  Stream stream = Stream::kCompute;
  size_t position = 0;
  std::shared_ptr<GraphRun> run;
};

struct FakeStreams::GraphState {
  std::array<std::vector<Op>, kStreams> ops;
};

// A launch: how far it is.
struct FakeStreams::GraphRun {
  std::array<std::deque<Op>, kStreams> left;
  std::array<size_t, kStreams> done = {};

  bool is_done() const {
    return std::all_of(left.begin(), left.end(),
                       [](const auto& branch) { return branch.empty(); });
  }
};

struct FakeStreams::Capture {
  // From 1.
  int number = 0;
  GraphState graph;
  // kCompute from the beginning; others when they have joined.
  std::array<bool, kStreams> has = {};
  // How many ops of each stream kCompute has waited for.
  std::array<size_t, kStreams> joined = {};
  absl::Status broken;
};

class FakeStreams::FakeBuffer : public Buffer {
 public:
  FakeBuffer(FakeStreams* streams, char* data, int64_t bytes)
      : streams_(streams), data_(data), bytes_(bytes) {}
  ~FakeBuffer() override { streams_->Free(data_); }

  char* data() const override { return data_; }
  int64_t size_bytes() const override { return bytes_; }

 private:
  FakeStreams* const streams_;
  char* const data_;
  const int64_t bytes_;
};

class FakeStreams::FakeEvent : public Event {
 public:
  explicit FakeEvent(EventUse use) { state_->use = use; }

  const std::shared_ptr<EventState>& state() const { return state_; }
  static const std::shared_ptr<EventState>& Of(const Event& event) {
    return static_cast<const FakeEvent&>(event).state();
  }

 private:
  const std::shared_ptr<EventState> state_ = std::make_shared<EventState>();
};

class FakeStreams::FakeGraph : public Graph {
 public:
  explicit FakeGraph(GraphState state) : state_(std::move(state)) {}

  const GraphState& state() const { return state_; }

 private:
  const GraphState state_;
};

FakeStreams::FakeStreams(uint64_t seed) : random_(seed) {
  for (int& weight : weights_) weight = kWeights[random_() % 3];
}

FakeStreams::~FakeStreams() = default;

void FakeStreams::SetWeight(Stream stream, int weight) {
  weights_[IndexOf(stream)] = weight;
}

// Every public call begins so.
absl::Status FakeStreams::BeginCall(absl::string_view name) {
  RETURN_IF_ERROR(failure_);
  if (current_device != this) {
    return absl::InternalError(
        absl::StrCat(name, ": another device is current on this thread"));
  }
  if (calls_until_failure_ == 0 || --calls_until_failure_ > 0) {
    return absl::OkStatus();
  }
  return absl::InternalError(absl::StrCat("the fake fails: ", name));
}

// What is wrong in a capture also ends it.
absl::Status FakeStreams::Refuse(absl::string_view what) {
  const absl::Status status = absl::InternalError(what);
  if (capture_ != nullptr) capture_->broken.Update(status);
  return status;
}

absl::Status FakeStreams::MakeCurrent() {
  current_device = this;
  return BeginCall("MakeCurrent");
}

absl::StatusOr<std::unique_ptr<DeviceStreams::Buffer>> FakeStreams::Allocate(
    int64_t bytes, absl::string_view what) {
  const AllocationPause pause;
  RETURN_IF_ERROR(BeginCall(absl::StrCat("Allocate ", what)));
  if (capture_ != nullptr) return Refuse("Allocate in a capture");
  Block block{AlignedBuffer::OfPages(static_cast<size_t>(bytes)), bytes};
  char* const data = block.memory.data();
  blocks_.push_back(std::move(block));
  return std::make_unique<FakeBuffer>(this, data, bytes);
}

void FakeStreams::Free(char* data) {
  const auto block =
      std::find_if(blocks_.begin(), blocks_.end(),
                   [data](const Block& b) { return b.memory.data() == data; });
  block->is_live = false;
  std::memset(data, kPoison, static_cast<size_t>(block->bytes));
}

absl::Status FakeStreams::CheckDevice(const void* memory, int64_t bytes) const {
  const char* const begin = static_cast<const char*>(memory);
  for (const Block& block : blocks_) {
    const char* const data = block.memory.data();
    if (begin < data || begin + bytes > data + block.bytes) continue;
    if (block.is_live) return absl::OkStatus();
    return absl::InvalidArgumentError("memory of the device that was freed");
  }
  return absl::InvalidArgumentError("not memory of the device");
}

absl::StatusOr<std::unique_ptr<DeviceStreams::Pin>> FakeStreams::PinHost(
    void* memory, int64_t bytes) {
  const AllocationPause pause;
  RETURN_IF_ERROR(BeginCall("PinHost"));
  if (reinterpret_cast<uintptr_t>(memory) % AlignedBuffer::kPage != 0) {
    return Refuse("PinHost: the memory does not begin at a page");
  }
  return PinnedPages::OfProcess().Pin(memory, bytes);
}

absl::StatusOr<std::unique_ptr<DeviceStreams::Event>> FakeStreams::CreateEvent(
    EventUse use) {
  const AllocationPause pause;
  RETURN_IF_ERROR(BeginCall("CreateEvent"));
  return std::make_unique<FakeEvent>(use);
}

bool FakeStreams::IsCaptured(Stream stream) const {
  return capture_ != nullptr && capture_->has[IndexOf(stream)];
}

absl::Status FakeStreams::Put(Stream stream, Op op) {
  const size_t index = IndexOf(stream);
  if (IsCaptured(stream)) {
    capture_->graph.ops[index].push_back(std::move(op));
  } else {
    queues_[index].push_back(std::move(op));
  }
  return absl::OkStatus();
}

absl::Status FakeStreams::Compute(Work work) {
  const AllocationPause pause;
  RETURN_IF_ERROR(BeginCall("Execute"));
  Op op;
  op.work = [this, work = std::move(work)] {
    ++computed_;
    return work();
  };
  return Put(Stream::kCompute, std::move(op));
}

absl::Status FakeStreams::PutWork(Stream stream, Work work) {
  const AllocationPause pause;
  RETURN_IF_ERROR(BeginCall("work"));
  Op op;
  op.work = std::move(work);
  return Put(stream, std::move(op));
}

// Pages that are pinned in part, and pages that are not in a graph, are
// refused.
absl::Status FakeStreams::CheckHost(const void* host, int64_t bytes,
                                    Stream stream) {
  const Extent extent = PinnedPages::OfProcess().ExtentOf(host, bytes);
  if (extent == Extent::kPart) {
    return Refuse(
        "copy: a part of the host's memory is pinned, and a part not");
  }
  if (extent == Extent::kNone && IsCaptured(stream)) {
    return Refuse("copy in a capture: the host's memory is not pinned");
  }
  return absl::OkStatus();
}

absl::Status FakeStreams::PutCopy(Stream stream, void* to, const void* from,
                                  int64_t bytes) {
  const bool to_device = stream == Stream::kToDevice;
  const void* const device = to_device ? to : from;
  RETURN_IF_ERROR(CheckDevice(device, bytes));
  RETURN_IF_ERROR(CheckHost(to_device ? from : to, bytes, stream));
  Op op;
  op.work = [this, to, from, device, bytes] {
    RETURN_IF_ERROR(CheckDevice(device, bytes));
    std::memcpy(to, from, static_cast<size_t>(bytes));
    return absl::OkStatus();
  };
  return Put(stream, std::move(op));
}

absl::Status FakeStreams::CopyToDevice(void* device, const void* host,
                                       int64_t bytes) {
  const AllocationPause pause;
  RETURN_IF_ERROR(BeginCall("CopyToDevice"));
  RETURN_IF_ERROR(PutCopy(Stream::kToDevice, device, host, bytes));
  if (PinnedPages::OfProcess().ExtentOf(host, bytes) == Extent::kAll) {
    return absl::OkStatus();
  }
  return RunUntil(
      [this] { return queues_[IndexOf(Stream::kToDevice)].empty(); });
}

absl::Status FakeStreams::CopyToHost(void* host, const void* device,
                                     int64_t bytes) {
  const AllocationPause pause;
  RETURN_IF_ERROR(BeginCall("CopyToHost"));
  RETURN_IF_ERROR(PutCopy(Stream::kToHost, host, device, bytes));
  if (PinnedPages::OfProcess().ExtentOf(host, bytes) == Extent::kAll) {
    return absl::OkStatus();
  }
  return RunUntil([this] { return queues_[IndexOf(Stream::kToHost)].empty(); });
}

absl::Status FakeStreams::Record(Event* event, Stream stream) {
  const AllocationPause pause;
  RETURN_IF_ERROR(BeginCall("Record"));
  const std::shared_ptr<EventState>& state = FakeEvent::Of(*event);
  Op op;
  op.kind = Op::Kind::kRecord;
  op.event = state;
  if (!IsCaptured(stream)) {
    state->capture = 0;
    op.ticket = ++state->recorded;
    return Put(stream, std::move(op));
  }
  // Each launch gives it its ticket.
  if (state->use == EventUse::kHost) return Put(stream, std::move(op));
  state->capture = capture_->number;
  state->stream = stream;
  state->position = capture_->graph.ops[IndexOf(stream)].size();
  return absl::OkStatus();
}

absl::Status FakeStreams::Wait(Stream stream, const Event& event) {
  const AllocationPause pause;
  RETURN_IF_ERROR(BeginCall("Wait"));
  const std::shared_ptr<EventState>& state = FakeEvent::Of(event);
  if (state->use != EventUse::kStreams) {
    return Refuse("Wait: the event is for the host");
  }
  if (state->capture != 0) return Join(stream, *state);
  if (IsCaptured(stream)) {
    return Refuse("Wait in a capture: the event was recorded before it");
  }
  if (state->recorded == 0) return Refuse("Wait: never recorded");
  Op op;
  op.kind = Op::Kind::kWait;
  op.event = state;
  op.ticket = state->recorded;
  return Put(stream, std::move(op));
}

// In a capture: `stream` becomes part of it, if it was not.
absl::Status FakeStreams::Join(Stream stream, const EventState& event) {
  if (capture_ == nullptr || event.capture != capture_->number) {
    return Refuse("Wait: the event was recorded in a capture that is over");
  }
  capture_->has[IndexOf(stream)] = true;
  if (stream == Stream::kCompute) {
    capture_->joined[IndexOf(event.stream)] = event.position;
  }
  Op op;
  op.kind = Op::Kind::kJoin;
  op.stream = event.stream;
  op.position = event.position;
  return Put(stream, std::move(op));
}

absl::Status FakeStreams::Await(const Event& event) {
  const AllocationPause pause;
  RETURN_IF_ERROR(BeginCall("Await"));
  const std::shared_ptr<EventState>& state = FakeEvent::Of(event);
  if (capture_ != nullptr) return Refuse("Await in a capture");
  if (state->use != EventUse::kHost) {
    return Refuse("Await: the event is for streams");
  }
  if (state->recorded == 0) return Refuse("Await: never recorded");
  return RunUntil([&state] { return state->come >= state->recorded; });
}

absl::Status FakeStreams::BeginCapture() {
  const AllocationPause pause;
  RETURN_IF_ERROR(BeginCall("BeginCapture"));
  if (capture_ != nullptr) return Refuse("BeginCapture in a capture");
  capture_ = std::make_unique<Capture>();
  capture_->number = ++captures_;
  capture_->has[IndexOf(Stream::kCompute)] = true;
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<DeviceStreams::Graph>>
FakeStreams::EndCapture() {
  const AllocationPause pause;
  // Over in any case, and no longer the one that events know.
  const std::unique_ptr<Capture> capture = std::move(capture_);
  RETURN_IF_ERROR(BeginCall("EndCapture"));
  if (capture == nullptr) return Refuse("EndCapture: there is no capture");
  RETURN_IF_ERROR(capture->broken);
  if (fails_captures_) return Refuse("EndCapture: the fake fails");
  for (const Stream stream : {Stream::kToDevice, Stream::kToHost}) {
    const size_t index = IndexOf(stream);
    if (capture->joined[index] == capture->graph.ops[index].size()) continue;
    return Refuse("EndCapture: kCompute has not waited for another stream");
  }
  return std::make_unique<FakeGraph>(std::move(capture->graph));
}

absl::Status FakeStreams::Launch(const Graph& graph) {
  const AllocationPause pause;
  RETURN_IF_ERROR(BeginCall("Launch"));
  if (capture_ != nullptr) return Refuse("Launch in a capture");
  ++launches_;
  auto run = std::make_shared<GraphRun>();
  const GraphState& state = static_cast<const FakeGraph&>(graph).state();
  for (int i = 0; i < kStreams; ++i) {
    for (Op op : state.ops[i]) {
      if (op.kind == Op::Kind::kRecord) op.ticket = ++op.event->recorded;
      run->left[i].push_back(std::move(op));
    }
  }
  Op op;
  op.kind = Op::Kind::kLaunch;
  op.run = std::move(run);
  return Put(Stream::kCompute, std::move(op));
}

absl::Status FakeStreams::Synchronize() {
  const AllocationPause pause;
  RETURN_IF_ERROR(BeginCall("Synchronize"));
  if (capture_ != nullptr) return Refuse("Synchronize in a capture");
  return RunUntil([this] {
    return std::all_of(queues_.begin(), queues_.end(),
                       [](const auto& queue) { return queue.empty(); });
  });
}

absl::Status FakeStreams::RunUntil(const std::function<bool()>& is_reached) {
  while (!is_reached()) {
    if (!RunOne()) return absl::InternalError("the streams wait for ever");
    RETURN_IF_ERROR(failure_);
  }
  return absl::OkStatus();
}

bool FakeStreams::IsRunnable(const Op& op) const {
  switch (op.kind) {
    case Op::Kind::kWait:
      return op.event->come >= op.ticket;
    case Op::Kind::kJoin: {
      const GraphRun& run = *queues_[IndexOf(Stream::kCompute)].front().run;
      return run.done[IndexOf(op.stream)] >= op.position;
    }
    default:
      return true;
  }
}

void FakeStreams::AddChoices(std::vector<Choice>* choices) {
  for (int i = 0; i < kStreams; ++i) {
    if (queues_[i].empty()) continue;
    if (queues_[i].front().kind != Op::Kind::kLaunch) {
      if (IsRunnable(queues_[i].front())) {
        choices->push_back({&queues_[i], nullptr, weights_[i]});
      }
      continue;
    }
    GraphRun& run = *queues_[i].front().run;
    for (int branch = 0; branch < kStreams; ++branch) {
      std::deque<Op>& left = run.left[branch];
      if (left.empty() || !IsRunnable(left.front())) continue;
      choices->push_back({&left, &run.done[branch], weights_[branch]});
    }
  }
}

FakeStreams::Choice FakeStreams::Choose(const std::vector<Choice>& choices) {
  int sum = 0;
  for (const Choice& choice : choices) sum += choice.weight;
  if (sum == 0) return choices[random_() % choices.size()];
  int left = static_cast<int>(random_() % static_cast<uint64_t>(sum));
  for (const Choice& choice : choices) {
    left -= choice.weight;
    if (left < 0) return choice;
  }
  return choices.back();
}

bool FakeStreams::RunOne() {
  std::vector<Choice> choices;
  AddChoices(&choices);
  if (choices.empty()) return false;
  const Choice choice = Choose(choices);
  const Op op = std::move(choice.queue->front());
  choice.queue->pop_front();
  if (choice.done != nullptr) ++*choice.done;
  Run(op);
  std::deque<Op>& compute = queues_[IndexOf(Stream::kCompute)];
  while (!compute.empty() && compute.front().kind == Op::Kind::kLaunch &&
         compute.front().run->is_done()) {
    compute.pop_front();
  }
  return true;
}

void FakeStreams::Run(const Op& op) {
  if (op.kind == Op::Kind::kRecord) {
    op.event->come = std::max(op.event->come, op.ticket);
  }
  if (op.kind != Op::Kind::kWork) return;
  if (works_until_failure_ > 0 && --works_until_failure_ == 0) {
    failure_ = absl::InternalError("the fake fails: work in a stream");
  } else {
    failure_ = op.work();
  }
  if (failure_.ok()) return;
  for (std::deque<Op>& queue : queues_) queue.clear();
}

}  // namespace muster
