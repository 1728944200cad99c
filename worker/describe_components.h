#ifndef WORKER_DESCRIBE_COMPONENTS_H_
#define WORKER_DESCRIBE_COMPONENTS_H_

#include <string>

namespace muster {

// What this binary was linked with, for `worker --list`: layers, optimizers,
// placement strategies and backends, with their attributes.
std::string DescribeComponents();

}  // namespace muster

#endif  // WORKER_DESCRIBE_COMPONENTS_H_
