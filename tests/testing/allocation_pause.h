#ifndef TESTS_TESTING_ALLOCATION_PAUSE_H_
#define TESTS_TESTING_ALLOCATION_PAUSE_H_

#include <atomic>

namespace muster {

// While one lives, tests/worker/model/allocation_counter.h counts nothing: a
// fake may allocate where what it stands for does not.
class AllocationPause {
 public:
  AllocationPause() { ++living_; }
  ~AllocationPause() { --living_; }

  AllocationPause(const AllocationPause&) = delete;
  AllocationPause& operator=(const AllocationPause&) = delete;

  static bool is_on() { return living_ > 0; }

 private:
  static inline std::atomic<int> living_{0};
};

}  // namespace muster

#endif  // TESTS_TESTING_ALLOCATION_PAUSE_H_
