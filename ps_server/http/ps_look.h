#ifndef PS_SERVER_HTTP_PS_LOOK_H_
#define PS_SERVER_HTTP_PS_LOOK_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "proto/parameter_service.pb.h"
#include "ps_server/service/job_look.h"
#include "ps_server/service/shard_look.h"

namespace muster {

// What a ps task tells by HTTP, all of it counted by others. A value.
struct PsLook {
  int32_t task_index = 0;
  // Ps tasks of the cluster.
  int32_t num_ps = 1;
  std::string version;
  // One moment on both clocks; those of the jobs are of the second.
  absl::Time wall;
  absl::Time now;
  absl::Time started;
  double cpu_seconds = 0;
  int64_t resident_bytes = 0;

  ShardLook shard;
  // By namespace. None but on ps task 0, which alone `knows_jobs`.
  bool knows_jobs = false;
  std::vector<JobLook> jobs;
  // The shards of other ps tasks that have answered, by task.
  std::map<int32_t, ListNamespacesReply> others;

  // The wall clock at a moment of the other one.
  absl::Time WallOf(absl::Time moment) const { return wall - (now - moment); }
};

}  // namespace muster

#endif  // PS_SERVER_HTTP_PS_LOOK_H_
