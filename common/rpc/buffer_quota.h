#ifndef COMMON_RPC_BUFFER_QUOTA_H_
#define COMMON_RPC_BUFFER_QUOTA_H_

#include <cstddef>
#include <thread>

#include "common/base/file_descriptor.h"
#include "grpcpp/resource_quota.h"

namespace muster {

// The limit of what gRPC buffers for all connections of a server: a
// ResourceQuota and a thread that has it kept. By itself it is kept late. gRPC
// gives memory back on the thread whose read was one too many, connection after
// connection, and a peer that never pauses keeps that thread reading: a message
// of 256 MiB got past a quota of 64 MiB by 4 to 190 MiB, the more the idler the
// machine.
//
// The thread looks each kTickMs whether more than `bytes` are in use, and has
// gRPC give back what is too much there and then: unused buffers, connections
// without a call, in the end calls, which fail with ResourceExhausted and may
// be sent again. What comes within a tick is on top.
//
// The quota outlives this where a server has it; then it is kept late.
class BufferQuota {
 public:
  // On loopback 10 to 15 MiB come in that time.
  static constexpr int kTickMs = 10;

  // `max_threads`: that gRPC may start for synchronous handlers.
  BufferQuota(size_t bytes, int max_threads);
  ~BufferQuota();

  BufferQuota(const BufferQuota&) = delete;
  BufferQuota& operator=(const BufferQuota&) = delete;

  const grpc::ResourceQuota& quota() const { return quota_; }

 private:
  void Run();

  // Constant after construction.
  const size_t bytes_;
  // Readable when the thread is to end. Unlike Clock, which has its timeouts
  // from another thread, it wakes one thread a tick: this one never rests.
  const FileDescriptor end_;

  // Used by the thread only.
  grpc::ResourceQuota quota_;

  // Last: uses all of the above.
  std::thread thread_;
};

}  // namespace muster

#endif  // COMMON_RPC_BUFFER_QUOTA_H_
