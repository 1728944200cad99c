#ifndef PS_SERVER_SERVICE_RECORDED_REQUEST_H_
#define PS_SERVER_SERVICE_RECORDED_REQUEST_H_

#include <cstdint>

#include "absl/time/time.h"
#include "common/rpc/parameter_link.h"
#include "proto/parameter_service.pb.h"
#include "ps_server/shard/part_recorder.h"

namespace muster {

// What a recording says of a request that came at `asked`; nothing of the kinds
// that take no time.
template <typename Request>
PartRecorder::Turn TurnOf(const Request& /*request*/, absl::Time /*asked*/) {
  return {};
}
inline PartRecorder::Turn TurnOf(const Frame<PushPart>& request,
                                 absl::Time asked) {
  const PushPart& header = request.header;
  return {"push",
          &header.sender(),
          header.step(),
          header.part(),
          static_cast<int64_t>(request.data.size()),
          asked};
}
inline PartRecorder::Turn TurnOf(const PullRequest& request, absl::Time asked) {
  return {"pull", &request.sender(), 0, 0, 0, asked};
}
inline PartRecorder::Turn TurnOf(const Frame<PullRowsRequest>& request,
                                 absl::Time asked) {
  return {"pull of rows", &request.header.sender(), 0, 0, 0, asked};
}
inline PartRecorder::Turn TurnOf(const Frame<LoadPart>& request,
                                 absl::Time asked) {
  const auto bytes = static_cast<int64_t>(request.data.size());
  return {"load", &request.header.sender(), 0, 0, bytes, asked};
}
inline PartRecorder::Turn TurnOf(const BeginSnapshotRequest& request,
                                 absl::Time asked) {
  return {"begin of a save", &request.sender(), 0, 0, 0, asked};
}
inline PartRecorder::Turn TurnOf(const ReadSnapshotRequest& request,
                                 absl::Time asked) {
  return {"read for a save", &request.sender(), 0, 0, 0, asked};
}

}  // namespace muster

#endif  // PS_SERVER_SERVICE_RECORDED_REQUEST_H_
