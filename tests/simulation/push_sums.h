#ifndef TESTS_SIMULATION_PUSH_SUMS_H_
#define TESTS_SIMULATION_PUSH_SUMS_H_

#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace muster {

// One worker's pushes of one part to one shard in one epoch, and the sums that
// they can have made of their values. Each push has a value of its own
// (SimModel::PushValue), so that one given up and another applied twice do not
// make up for each other, as they would in a count.
class PushSums {
 public:
  // (incarnation, step)
  using Steps = std::set<std::pair<uint64_t, int64_t>>;

  // Returns the step before it that the shard was sent by this incarnation and
  // has not acknowledged; 0 if there is none: who is not answered goes on
  // asking.
  int64_t Sent(uint64_t incarnation, int64_t step);
  void Acknowledged(uint64_t incarnation, int64_t step) {
    acknowledged_.insert({incarnation, step});
  }
  const Steps& acknowledged() const { return acknowledged_; }

  // `sum` is that of each acknowledged push once, and of some of those that
  // were only sent, each at most once.
  bool Explains(int64_t sum) const;
  // The acknowledged ones, and those others that make up the rest of `sum`.
  Steps Applied(int64_t sum) const;
  // For people: "3 were acknowledged (sum 4711), 1 more was sent (17)".
  std::string Describe() const;

 private:
  // The values of those that were sent and not acknowledged.
  std::vector<int64_t> OpenValues() const;
  int64_t AcknowledgedSum() const;

  Steps sent_;
  Steps acknowledged_;
};

}  // namespace muster

#endif  // TESTS_SIMULATION_PUSH_SUMS_H_
