#ifndef WORKER_BACKEND_VIRTUAL_DEVICES_H_
#define WORKER_BACKEND_VIRTUAL_DEVICES_H_

#include <vector>

#include "absl/strings/string_view.h"
#include "worker/backend/backend.h"

namespace muster {

// The devices "NAME:0", "NAME:1", ... of a backend that computes on this
// machine's cores: as many as there are cores, and no fewer than 8, so that
// what runs on many devices runs anywhere. They share the cores.
std::vector<Device> VirtualDevices(absl::string_view backend,
                                   absl::string_view description);

}  // namespace muster

#endif  // WORKER_BACKEND_VIRTUAL_DEVICES_H_
