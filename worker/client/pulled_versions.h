#ifndef WORKER_CLIENT_PULLED_VERSIONS_H_
#define WORKER_CLIENT_PULLED_VERSIONS_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "worker/client/client_model.h"

namespace muster {

// Which values were pulled: a push of gradients that were computed from them
// says so to each shard.
struct PulledVersions {
  // They are of this model, with its fences.
  std::shared_ptr<const ClientModel> model;
  // [ps task][part]
  std::vector<std::vector<int64_t>> parts;
  // What the values took on the way.
  int64_t bytes = 0;
};

}  // namespace muster

#endif  // WORKER_CLIENT_PULLED_VERSIONS_H_
