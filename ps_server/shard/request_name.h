#ifndef PS_SERVER_SHARD_REQUEST_NAME_H_
#define PS_SERVER_SHARD_REQUEST_NAME_H_

#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "proto/parameter_service.pb.h"
#include "ps_server/caller/task_name.h"

namespace muster {

// The start of an error message:
// "pull from /job:worker/task:1 to /job:ps/task:0".
inline std::string RequestName(absl::string_view request, const Sender& sender,
                               int32_t ps_index) {
  return absl::StrCat(request, " from ", TaskName(sender),
                      " to /job:ps/task:", ps_index);
}

}  // namespace muster

#endif  // PS_SERVER_SHARD_REQUEST_NAME_H_
