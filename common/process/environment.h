#ifndef COMMON_PROCESS_ENVIRONMENT_H_
#define COMMON_PROCESS_ENVIRONMENT_H_

#include <cstdlib>
#include <string>

namespace muster {

// The environment variable; "" if it is not set.
inline std::string Environment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace muster

#endif  // COMMON_PROCESS_ENVIRONMENT_H_
