#ifndef TESTS_COMMON_SUMMARY_READ_EVENTS_H_
#define TESTS_COMMON_SUMMARY_READ_EVENTS_H_

#include <cstdint>
#include <vector>

#include "absl/base/internal/endian.h"
#include "absl/strings/string_view.h"
#include "common/summary/event_record.h"
#include "proto/summary.pb.h"

namespace muster {

// The events of a file up to the first record that is torn or damaged, as
// TensorBoard reads it. `rest` gets what is behind them, if not null.
inline std::vector<Event> ReadEvents(absl::string_view file,
                                     absl::string_view* rest = nullptr) {
  constexpr size_t kHead = sizeof(uint64_t) + sizeof(uint32_t);
  constexpr size_t kTail = sizeof(uint32_t);
  std::vector<Event> events;
  while (file.size() >= kHead) {
    const uint64_t length = absl::little_endian::Load64(file.data());
    if (MaskedCrc32c(file.substr(0, sizeof(length))) !=
        absl::little_endian::Load32(file.data() + sizeof(length))) {
      break;
    }
    if (file.size() - kHead < length + kTail) break;
    const absl::string_view data = file.substr(kHead, length);
    if (MaskedCrc32c(data) !=
        absl::little_endian::Load32(file.data() + kHead + length)) {
      break;
    }
    Event event;
    if (!event.ParseFromArray(data.data(), static_cast<int>(data.size()))) {
      break;
    }
    events.push_back(event);
    file.remove_prefix(kHead + length + kTail);
  }
  if (rest != nullptr) *rest = file;
  return events;
}

}  // namespace muster

#endif  // TESTS_COMMON_SUMMARY_READ_EVENTS_H_
