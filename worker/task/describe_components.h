#ifndef WORKER_TASK_DESCRIBE_COMPONENTS_H_
#define WORKER_TASK_DESCRIBE_COMPONENTS_H_

#include <string>

#include "worker/backend/backend.h"

namespace muster {

// What this binary was linked with, for `worker --list`: layers, optimizers,
// placement strategies and backends with their devices, and their attributes.
std::string DescribeComponents(const GpuOptions& gpu);

}  // namespace muster

#endif  // WORKER_TASK_DESCRIBE_COMPONENTS_H_
