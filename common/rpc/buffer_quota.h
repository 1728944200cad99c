#ifndef COMMON_RPC_BUFFER_QUOTA_H_
#define COMMON_RPC_BUFFER_QUOTA_H_

#include <cstddef>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "grpcpp/resource_quota.h"

namespace muster {

// How much gRPC may buffer for all connections of one server: a ResourceQuota,
// and a thread that has it kept. By itself it is kept late. gRPC gives memory
// back on the thread whose read was one too many, connection after connection,
// and a peer that never pauses keeps that thread reading: a message of 256 MiB
// got past a quota of 64 MiB by 4 to 190 MiB, the more the idler the machine.
//
// The thread looks each kTick whether more than `bytes` are in use, and has
// gRPC give back what is too much there and then: unused buffers, connections
// without a call, in the end calls, which fail with ResourceExhausted and may
// be sent again. What comes within a tick is on top.
//
// The quota outlives this where a server has it; then it is kept late.
class BufferQuota {
 public:
  // On loopback 10 to 15 MiB come in that time.
  static constexpr absl::Duration kTick = absl::Milliseconds(10);

  // `max_threads`: that gRPC may start for synchronous handlers. `clock`
  // (monotonic) outlives this.
  BufferQuota(size_t bytes, int max_threads, const Clock* clock);
  ~BufferQuota();

  BufferQuota(const BufferQuota&) = delete;
  BufferQuota& operator=(const BufferQuota&) = delete;

  const grpc::ResourceQuota& quota() const { return quota_; }

 private:
  void Run();

  // Constant after construction.
  const size_t bytes_;
  const Clock* const clock_;

  // Used by the thread only.
  grpc::ResourceQuota quota_;

  absl::Mutex mu_;
  bool closing_ ABSL_GUARDED_BY(mu_) = false;

  // Last: uses all of the above.
  std::unique_ptr<ClockThread> thread_;
};

}  // namespace muster

#endif  // COMMON_RPC_BUFFER_QUOTA_H_
