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
  bool is_timed = false;
  int64_t recorded = 0;
  int64_t come = 0;
  // When the last one came.
  absl::Duration at;

  bool has_come() const { return recorded > 0 && come >= recorded; }
};

// A piece of work that waits in a stream.
struct FakeStreams::Op {
  enum class Kind { kWork, kRecord, kWait };

  Kind kind = Kind::kWork;
  Work work;
  // kRecord and kWait: which, and its how manyth record.
  std::shared_ptr<EventState> event;
  int64_t ticket = 0;

  bool is_runnable() const {
    return kind != Kind::kWait || event->come >= ticket;
  }
};

struct FakeStreams::Capture {
  std::vector<Work> works;
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
  explicit FakeEvent(bool is_timed) { state_->is_timed = is_timed; }

  const std::shared_ptr<EventState>& state() const { return state_; }
  static const std::shared_ptr<EventState>& Of(const Event& event) {
    return static_cast<const FakeEvent&>(event).state();
  }

 private:
  const std::shared_ptr<EventState> state_ = std::make_shared<EventState>();
};

class FakeStreams::FakeGraph : public Graph {
 public:
  explicit FakeGraph(std::vector<Work> works) : works_(std::move(works)) {}

  const std::vector<Work>& works() const { return works_; }

 private:
  const std::vector<Work> works_;
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

// The capture comes to no good end, either.
absl::Status FakeStreams::BeginCallOutside(absl::string_view name) {
  RETURN_IF_ERROR(BeginCall(name));
  if (capture_ == nullptr) return absl::OkStatus();
  const absl::Status status =
      absl::InternalError(absl::StrCat(name, " in a capture"));
  capture_->broken.Update(status);
  return status;
}

absl::Status FakeStreams::MakeCurrent() {
  current_device = this;
  return BeginCall("MakeCurrent");
}

absl::StatusOr<std::unique_ptr<DeviceStreams::Buffer>> FakeStreams::Allocate(
    int64_t bytes, absl::string_view what) {
  const AllocationPause pause;
  RETURN_IF_ERROR(BeginCallOutside(absl::StrCat("Allocate ", what)));
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
  RETURN_IF_ERROR(BeginCallOutside("PinHost"));
  if (reinterpret_cast<uintptr_t>(memory) % AlignedBuffer::kPage != 0) {
    return absl::InternalError("PinHost: the memory does not begin at a page");
  }
  return PinnedPages::OfProcess().Pin(memory, bytes);
}

absl::StatusOr<std::unique_ptr<DeviceStreams::Event>>
FakeStreams::CreateEvent() {
  const AllocationPause pause;
  RETURN_IF_ERROR(BeginCallOutside("CreateEvent"));
  return std::make_unique<FakeEvent>(/*is_timed=*/false);
}

absl::StatusOr<std::unique_ptr<DeviceStreams::Event>>
FakeStreams::CreateTimedEvent() {
  const AllocationPause pause;
  RETURN_IF_ERROR(BeginCallOutside("CreateTimedEvent"));
  return std::make_unique<FakeEvent>(/*is_timed=*/true);
}

void FakeStreams::Put(Stream stream, Op op) {
  queues_[IndexOf(stream)].push_back(std::move(op));
}

void FakeStreams::PutWorkInto(Stream stream, Work work) {
  Op op;
  op.work = std::move(work);
  Put(stream, std::move(op));
}

absl::Status FakeStreams::Compute(Work work) {
  const AllocationPause pause;
  RETURN_IF_ERROR(BeginCall("Execute"));
  Work counted = [this, work = std::move(work)] {
    ++computed_;
    return work();
  };
  if (capture_ != nullptr) {
    capture_->works.push_back(std::move(counted));
  } else {
    PutWorkInto(Stream::kCompute, std::move(counted));
  }
  return absl::OkStatus();
}

absl::Status FakeStreams::PutWork(Stream stream, Work work) {
  const AllocationPause pause;
  RETURN_IF_ERROR(BeginCallOutside("work"));
  PutWorkInto(stream, std::move(work));
  return absl::OkStatus();
}

// Returns when the copy is done, if the host's memory is not pinned.
absl::Status FakeStreams::PutCopy(Stream stream, void* to, const void* from,
                                  int64_t bytes) {
  const bool to_device = stream == Stream::kToDevice;
  const void* const device = to_device ? to : from;
  const void* const host = to_device ? from : to;
  RETURN_IF_ERROR(CheckDevice(device, bytes));
  const Extent pinned = PinnedPages::OfProcess().ExtentOf(host, bytes);
  if (pinned == Extent::kPart) {
    return absl::InternalError(
        "copy: a part of the host's memory is pinned, and a part not");
  }
  PutWorkInto(stream, [this, to, from, device, bytes] {
    RETURN_IF_ERROR(CheckDevice(device, bytes));
    std::memcpy(to, from, static_cast<size_t>(bytes));
    return absl::OkStatus();
  });
  if (pinned == Extent::kAll) return absl::OkStatus();
  return RunUntil([&] { return queues_[IndexOf(stream)].empty(); });
}

absl::Status FakeStreams::CopyToDevice(void* device, const void* host,
                                       int64_t bytes) {
  const AllocationPause pause;
  RETURN_IF_ERROR(BeginCallOutside("CopyToDevice"));
  ++copies_to_device_;
  return PutCopy(Stream::kToDevice, device, host, bytes);
}

absl::Status FakeStreams::CopyToHost(void* host, const void* device,
                                     int64_t bytes) {
  const AllocationPause pause;
  RETURN_IF_ERROR(BeginCallOutside("CopyToHost"));
  return PutCopy(Stream::kToHost, host, device, bytes);
}

absl::Status FakeStreams::Record(Event* event, Stream stream) {
  const AllocationPause pause;
  RETURN_IF_ERROR(BeginCallOutside("Record"));
  Op op;
  op.kind = Op::Kind::kRecord;
  op.event = FakeEvent::Of(*event);
  op.ticket = ++op.event->recorded;
  if (op.event->is_timed) ++timed_records_;
  Put(stream, std::move(op));
  return absl::OkStatus();
}

absl::Status FakeStreams::Wait(Stream stream, const Event& event) {
  const AllocationPause pause;
  RETURN_IF_ERROR(BeginCallOutside("Wait"));
  Op op;
  op.kind = Op::Kind::kWait;
  op.event = FakeEvent::Of(event);
  op.ticket = op.event->recorded;
  if (op.ticket == 0) return absl::InternalError("Wait: never recorded");
  Put(stream, std::move(op));
  return absl::OkStatus();
}

absl::Status FakeStreams::Await(const Event& event) {
  const AllocationPause pause;
  RETURN_IF_ERROR(BeginCallOutside("Await"));
  const EventState& state = *FakeEvent::Of(event);
  if (state.recorded == 0) {
    return absl::InternalError("Await: never recorded");
  }
  return RunUntil([&state] { return state.come >= state.recorded; });
}

absl::StatusOr<absl::Duration> FakeStreams::ElapsedTime(const Event& from,
                                                        const Event& to) {
  RETURN_IF_ERROR(BeginCallOutside("ElapsedTime"));
  const EventState& begin = *FakeEvent::Of(from);
  const EventState& end = *FakeEvent::Of(to);
  if (!begin.is_timed || !end.is_timed) {
    return absl::InternalError("ElapsedTime: an event without timing");
  }
  if (!begin.has_come() || !end.has_come()) {
    return absl::InternalError("ElapsedTime: an event has not come");
  }
  if (end.at < begin.at) {
    return absl::InternalError("ElapsedTime: the first event came last");
  }
  return end.at - begin.at;
}

absl::Status FakeStreams::BeginCapture() {
  const AllocationPause pause;
  RETURN_IF_ERROR(BeginCallOutside("BeginCapture"));
  capture_ = std::make_unique<Capture>();
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<DeviceStreams::Graph>>
FakeStreams::EndCapture() {
  const AllocationPause pause;
  // Over in any case.
  const std::unique_ptr<Capture> capture = std::move(capture_);
  RETURN_IF_ERROR(BeginCall("EndCapture"));
  if (capture == nullptr) {
    return absl::InternalError("EndCapture: there is no capture");
  }
  RETURN_IF_ERROR(capture->broken);
  if (fails_captures_) {
    return absl::InternalError("EndCapture: the fake fails");
  }
  return std::make_unique<FakeGraph>(std::move(capture->works));
}

absl::Status FakeStreams::Launch(const Graph& graph) {
  const AllocationPause pause;
  RETURN_IF_ERROR(BeginCallOutside("Launch"));
  ++launches_;
  for (const Work& work : static_cast<const FakeGraph&>(graph).works()) {
    PutWorkInto(Stream::kCompute, work);
  }
  return absl::OkStatus();
}

absl::Status FakeStreams::Synchronize() {
  const AllocationPause pause;
  RETURN_IF_ERROR(BeginCallOutside("Synchronize"));
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

std::deque<FakeStreams::Op>* FakeStreams::Choose() {
  std::array<int, kStreams> weights = {};
  int sum = 0;
  std::deque<Op>* last = nullptr;
  for (int i = 0; i < kStreams; ++i) {
    if (queues_[i].empty() || !queues_[i].front().is_runnable()) continue;
    last = &queues_[i];
    weights[i] = weights_[i];
    sum += weights[i];
  }
  // Only streams of no weight.
  if (sum == 0) return last;
  int left = static_cast<int>(random_() % static_cast<uint64_t>(sum));
  for (int i = 0; i < kStreams; ++i) {
    left -= weights[i];
    if (left < 0) return &queues_[i];
  }
  return last;
}

bool FakeStreams::RunOne() {
  std::deque<Op>* const queue = Choose();
  if (queue == nullptr) return false;
  const Op op = std::move(queue->front());
  queue->pop_front();
  Run(op);
  return true;
}

void FakeStreams::Run(const Op& op) {
  if (op.kind == Op::Kind::kRecord) {
    op.event->come = std::max(op.event->come, op.ticket);
    op.event->at = now_;
  }
  if (op.kind != Op::Kind::kWork) return;
  now_ += kWorkTime;
  if (works_until_failure_ > 0 && --works_until_failure_ == 0) {
    failure_ = absl::InternalError("the fake fails: work in a stream");
  } else {
    failure_ = op.work();
  }
  if (failure_.ok()) return;
  for (std::deque<Op>& queue : queues_) queue.clear();
}

}  // namespace muster
