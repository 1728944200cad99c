#include "common/summary/profile_timeline.h"

#include <utility>

namespace muster {
namespace {

// The most that a submessage or string takes besides its bytes, in a part.
constexpr int64_t kFieldBytes = 5;
// For the fields that a part has once.
constexpr int64_t kOwnBytes = 256;

}  // namespace

ProfileTimeline::ProfileTimeline(absl::string_view task, int64_t max_bytes)
    : bytes_left_(max_bytes - kOwnBytes) {
  part_.set_task(std::string(task));
}

bool ProfileTimeline::HasRoomFor(int64_t bytes) {
  if (bytes + kFieldBytes > bytes_left_) return false;
  bytes_left_ -= bytes + kFieldBytes;
  return true;
}

void ProfileTimeline::NameLane(int lane, absl::string_view name) {
  if (HasRoomFor(static_cast<int64_t>(name.size()))) {
    lanes_[lane] = std::string(name);
  }
}

int ProfileTimeline::NameIndex(absl::string_view name) {
  const auto known = names_.find(name);
  if (known != names_.end()) return known->second;
  if (!HasRoomFor(static_cast<int64_t>(name.size()))) return -1;
  const int index = part_.names_size();
  part_.add_names(std::string(name));
  names_.emplace(name, index);
  return index;
}

void ProfileTimeline::Add(const TimelineSpan& span) {
  ProfileEvent event;
  event.set_lane(span.lane);
  // Both ends lose their fractions, so that spans nest as they did.
  event.set_begin_us(absl::ToUnixMicros(span.begin));
  event.set_duration_us(absl::ToUnixMicros(span.end) - event.begin_us());
  event.set_step(span.step);
  event.set_bytes(span.bytes);
  event.set_part(span.part);
  const int name = NameIndex(span.name);
  if (name >= 0) event.set_name(name);
  if (name < 0 || lanes_.find(span.lane) == lanes_.end() ||
      !HasRoomFor(static_cast<int64_t>(event.ByteSizeLong()))) {
    part_.set_left_out(part_.left_out() + 1);
    return;
  }
  *part_.add_events() = std::move(event);
}

ProfilePart ProfileTimeline::Take() {
  std::map<int, int> indices;
  for (auto& [lane, name] : lanes_) {
    indices[lane] = part_.lanes_size();
    part_.add_lanes(std::move(name));
  }
  for (ProfileEvent& event : *part_.mutable_events()) {
    event.set_lane(indices[event.lane()]);
  }
  return std::move(part_);
}

}  // namespace muster
