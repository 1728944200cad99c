#ifndef PS_SERVER_CALLER_ENDED_STARTS_H_
#define PS_SERVER_CALLER_ENDED_STARTS_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "proto/parameter_service.pb.h"

namespace muster {

// The starts of tasks whose namespace an operator has taken from them: they end
// instead of coming again. Bounded: the oldest are forgotten. Not thread-safe.
class EndedStarts {
 public:
  static constexpr size_t kMost = 4096;

  // `why` is the message that it gets.
  void Add(uint64_t incarnation, const std::string& why);

  // OK, or FailedPrecondition ("fenced: ...", REPLACED), which ends the sender.
  absl::Status Check(const Sender& sender) const;

 private:
  std::map<uint64_t, std::string> why_;
  // In the order of Add.
  std::deque<uint64_t> order_;
};

// "namespace 'a' was dropped (musterctl namespace drop)".
std::string DescribeEnd(const EndNamespaceRequest& request);

}  // namespace muster

#endif  // PS_SERVER_CALLER_ENDED_STARTS_H_
