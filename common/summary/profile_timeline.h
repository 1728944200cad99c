#ifndef COMMON_SUMMARY_PROFILE_TIMELINE_H_
#define COMMON_SUMMARY_PROFILE_TIMELINE_H_

#include <cstdint>
#include <map>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "common/rpc/protocol.h"
#include "common/summary/timeline.h"
#include "proto/profile.pb.h"

namespace muster {

// The most bytes of one task's part of a profile.
inline constexpr int64_t kMaxProfilePartBytes = kMaxPartBytes;

// One task's part of a job's profile, in the making. Spans for which there is
// no room are counted. Not thread-safe.
class ProfileTimeline : public Timeline {
 public:
  // `task`: "/job:worker/task:1".
  explicit ProfileTimeline(absl::string_view task,
                           int64_t max_bytes = kMaxProfilePartBytes);

  void NameLane(int lane, absl::string_view name) override;
  void Add(const TimelineSpan& span) override;

  // Something found no room.
  bool is_full() const { return part_.left_out() > 0; }

  // The part but for its clock. Once, last.
  ProfilePart Take();

 private:
  // Whether `bytes` more find room; then they are counted.
  bool HasRoomFor(int64_t bytes);
  // The index of a name; -1 without room.
  int NameIndex(absl::string_view name);

  int64_t bytes_left_;
  // Events have their lanes' numbers until Take.
  ProfilePart part_;
  std::map<int, std::string> lanes_;
  absl::flat_hash_map<std::string, int> names_;
};

}  // namespace muster

#endif  // COMMON_SUMMARY_PROFILE_TIMELINE_H_
