#ifndef TESTS_SIMULATION_RUNNING_HASH_H_
#define TESTS_SIMULATION_RUNNING_HASH_H_

#include <cstdint>

#include "absl/strings/string_view.h"

namespace muster {

// FNV-1a of all bytes that were added, the same on every machine.
class RunningHash {
 public:
  void Add(absl::string_view bytes) {
    for (const char byte : bytes) {
      value_ = (value_ ^ static_cast<unsigned char>(byte)) * 1099511628211u;
    }
  }
  void Add(uint64_t number) {
    Add({reinterpret_cast<const char*>(&number), sizeof(number)});
  }
  uint64_t value() const { return value_; }

 private:
  uint64_t value_ = 14695981039346656037u;
};

}  // namespace muster

#endif  // TESTS_SIMULATION_RUNNING_HASH_H_
