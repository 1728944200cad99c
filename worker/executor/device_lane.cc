#include "worker/executor/device_lane.h"

#include <cstring>
#include <iterator>
#include <optional>
#include <utility>

#include "absl/memory/memory.h"
#include "common/base/status_macros.h"

namespace muster {
namespace {

constexpr DeviceStreams::Stream kStreams[] = {DeviceStreams::Stream::kCompute,
                                              DeviceStreams::Stream::kToDevice,
                                              DeviceStreams::Stream::kToHost};

}  // namespace

absl::StatusOr<std::unique_ptr<DeviceLane>> DeviceLane::Create(
    const ExecutionPlan* plan, int device, DeviceStreams* streams,
    const LaneSchedule& schedule, int64_t arena_bytes) {
  auto lane = absl::WrapUnique(new DeviceLane(plan, device, streams, schedule));
  for (const size_t i : schedule.lanes[device]) {
    if (plan->instructions[i].is_seeded) lane->seeded_.push_back(i);
  }
  RETURN_IF_ERROR(streams->MakeCurrent());
  RETURN_IF_ERROR(lane->Allocate(schedule, arena_bytes));
  return lane;
}

absl::Status DeviceLane::Allocate(const LaneSchedule& schedule,
                                  int64_t arena_bytes) {
  ASSIGN_OR_RETURN(
      arena_, streams_.Allocate(arena_bytes, "activations and workspaces"));
  ASSIGN_OR_RETURN(host_seeds_, PinnedBuffer::Create(&streams_, SeedBytes()));
  ASSIGN_OR_RETURN(device_seeds_, streams_.Allocate(SeedBytes(), "seeds"));
  std::vector<bool> is_awaited = schedule.ends_late;
  for (const size_t i : schedule.lanes[device_]) {
    for (const size_t other : stream_waits_[i]) is_awaited[other] = true;
  }
  done_.resize(is_awaited.size());
  for (const size_t i : schedule.lanes[device_]) {
    if (!is_awaited[i]) continue;
    ASSIGN_OR_RETURN(done_[i], streams_.CreateEvent());
  }
  for (size_t i = 0; i < std::size(kStreams); ++i) {
    ASSIGN_OR_RETURN(auto event, streams_.CreateEvent());
    all_done_.push_back(std::move(event));
  }
  return absl::OkStatus();
}

void DeviceLane::BindSeeds(std::vector<Operands>* operands) const {
  const auto* seed = reinterpret_cast<const uint64_t*>(device_seeds_->data());
  for (const size_t i : seeded_) (*operands)[i].device_seed = seed++;
}

absl::Status DeviceLane::Begin(uint64_t step_seed) {
  RETURN_IF_ERROR(streams_.MakeCurrent());
  if (seeded_.empty()) return absl::OkStatus();
  char* to = host_seeds_->data();
  for (const size_t i : seeded_) {
    const uint64_t seed = SeedOf(plan_.instructions[i], step_seed);
    std::memcpy(to, &seed, sizeof(seed));
    to += sizeof(seed);
  }
  RETURN_IF_ERROR(streams_.CopyToDevice(device_seeds_->data(),
                                        host_seeds_->data(), SeedBytes()));
  Event* const sent = all_done_[static_cast<size_t>(Stream::kToDevice)].get();
  RETURN_IF_ERROR(streams_.Record(sent, Stream::kToDevice));
  return streams_.Wait(Stream::kCompute, *sent);
}

absl::Status DeviceLane::AwaitOthers(size_t instruction) {
  const std::optional<Stream> stream =
      StreamOf(plan_, plan_.instructions[instruction]);
  for (const size_t other : stream_waits_[instruction]) {
    RETURN_IF_ERROR(stream ? streams_.Wait(*stream, *done_[other])
                           : streams_.Await(*done_[other]));
  }
  return absl::OkStatus();
}

absl::Status DeviceLane::Execute(size_t instruction, const Operands& operands) {
  const Instruction& what = plan_.instructions[instruction];
  RETURN_IF_ERROR(AwaitOthers(instruction));
  const std::optional<Stream> stream = StreamOf(plan_, what);
  if (!stream) {
    CopyOnHost(plan_, what, operands);
    return absl::OkStatus();
  }
  if (*stream == Stream::kCompute) {
    RETURN_IF_ERROR(muster::Execute(what, operands));
  } else {
    const auto copy = *stream == Stream::kToDevice
                          ? &DeviceStreams::CopyToDevice
                          : &DeviceStreams::CopyToHost;
    RETURN_IF_ERROR((streams_.*copy)(
        operands.Get(Operand::kDst), operands.Get(Operand::kSrc),
        plan_.buffers[what.transferred(Operand::kDst)].size_bytes));
  }
  if (done_[instruction] == nullptr) return absl::OkStatus();
  return streams_.Record(done_[instruction].get(), *stream);
}

absl::Status DeviceLane::Finish(size_t instruction) {
  return streams_.Await(*done_[instruction]);
}

absl::Status DeviceLane::AwaitAll() {
  for (const Stream stream : kStreams) {
    RETURN_IF_ERROR(
        streams_.Record(all_done_[static_cast<size_t>(stream)].get(), stream));
  }
  for (const std::unique_ptr<Event>& event : all_done_) {
    RETURN_IF_ERROR(streams_.Await(*event));
  }
  return absl::OkStatus();
}

absl::Status DeviceLane::End(bool has_failed) {
  absl::Status status;
  if (!has_failed) status = AwaitAll();
  // The first error says what happened; what comes after it follows from it.
  if (has_failed || !status.ok()) streams_.Synchronize().IgnoreError();
  return status;
}

}  // namespace muster
