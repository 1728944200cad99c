#ifndef PS_SERVER_SERVICE_SHARD_LOOK_H_
#define PS_SERVER_SERVICE_SHARD_LOOK_H_

#include <cstdint>
#include <string>
#include <vector>

#include "proto/parameter_service.pb.h"
#include "ps_server/shard/shard_counters.h"

namespace muster {

// A shard, as its metrics tell it.
struct ShardLook {
  // One namespace's model.
  struct Model {
    std::string space;
    ShardState state;
    ShardCounters counters;
  };

  // By namespace; the default one first.
  std::vector<Model> models;
  // The most that all of them may take.
  int64_t max_bytes = 0;
  // Parts that found no room.
  int64_t refused_for_memory = 0;
};

}  // namespace muster

#endif  // PS_SERVER_SERVICE_SHARD_LOOK_H_
