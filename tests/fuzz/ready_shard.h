#ifndef TESTS_FUZZ_READY_SHARD_H_
#define TESTS_FUZZ_READY_SHARD_H_

#include "common/base/clock.h"
#include "ps_server/service/shard_server.h"

namespace muster {

// A READY shard of the tensor "w" [20], the state tensor "s" [3] and the table
// "u" of rows [2], with little room for others; all on the caller's thread.
// Senders and fences are those of tests/ps_server/shard/shard_requests.h, epoch
// 1; worker 0's incarnation is 9.
class ReadyShard {
 public:
  ReadyShard();

  ShardServer& server() { return server_; }
  const Clock& clock() const { return clock_; }

 private:
  const MonotonicClock clock_;
  ShardServer server_;
};

}  // namespace muster

#endif  // TESTS_FUZZ_READY_SHARD_H_
