#ifndef COMMON_RPC_TCP_SOCKET_LOOP_H_
#define COMMON_RPC_TCP_SOCKET_LOOP_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/file_descriptor.h"

namespace muster {

// One end of a connection on a SocketLoop.
class SocketHandler {
 public:
  // The events that a handler waits for.
  struct Interest {
    bool receive = false;
    bool send = false;
    // It goes on at once, when the others had their turn.
    bool again = false;
    // It has ended: the loop lets go of it.
    bool ended = false;
  };

  virtual ~SocketHandler() = default;

  // The same for its life; valid while the loop has the handler.
  virtual int fd() const = 0;

  // Does what it can without waiting: when the socket is ready, when somebody
  // has woken it, and each kTick. Runs on the loop's thread; again, while it
  // runs, if something in it calls SocketLoop::RunOnce.
  virtual Interest Proceed() = 0;
};

// The turns of connections that one thread serves. Thread-safe, but for the
// two that run.
class SocketLoop {
 public:
  static constexpr absl::Duration kTick = absl::Milliseconds(500);

  // Errors: ResourceExhausted without descriptors.
  static absl::StatusOr<std::unique_ptr<SocketLoop>> Create();

  SocketLoop(const SocketLoop&) = delete;
  SocketLoop& operator=(const SocketLoop&) = delete;

  // It proceeds soon, for the first time. The loop holds it until its end.
  void Add(std::shared_ptr<SocketHandler> handler);
  // It proceeds soon; nothing if the loop does not have it.
  void Wake(SocketHandler* handler);

  // Gives turns to handlers that are ready, after waiting for one at most so
  // long. One thread at a time.
  void RunOnce(absl::Duration patience);
  // Until Stop. Handlers are let go of at the end.
  void Run();
  // Run ends soon. Stays.
  void Stop();

  // Handlers that it has.
  int size() const;

 private:
  struct Entry {
    std::shared_ptr<SocketHandler> handler;
    // As epoll knows it; 0 if it does not: a socket that is registered tells of
    // its end without being asked, again and again.
    uint32_t events = 0;
    // It is in woken_.
    bool is_woken = false;
  };

  SocketLoop(FileDescriptor epoll, FileDescriptor bell);

  std::shared_ptr<SocketHandler> Find(SocketHandler* handler) const;
  void Give(SocketHandler* handler);
  void SetInterest(SocketHandler* handler,
                   const SocketHandler::Interest& interest);
  // How long to wait for a socket.
  int BeginWait(absl::Duration patience);
  // How many turns are due to those that were woken: each kTick to all.
  size_t EndWait();
  // The next one of them; null if there is none. One at a time, so that a
  // RunOnce within a turn goes on with the rest.
  SocketHandler* NextWoken();
  void WakeLocked(SocketHandler* handler) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void RingBell() const;

  const FileDescriptor epoll_;
  // An eventfd.
  const FileDescriptor bell_;

  mutable absl::Mutex mu_;
  absl::flat_hash_map<SocketHandler*, Entry> entries_ ABSL_GUARDED_BY(mu_);
  // Each at most once, in the order in which they were woken.
  std::deque<SocketHandler*> woken_ ABSL_GUARDED_BY(mu_);
  // The running thread waits, and nobody has rung yet.
  bool needs_bell_ ABSL_GUARDED_BY(mu_) = false;
  bool is_stopped_ ABSL_GUARDED_BY(mu_) = false;

  // Used by the thread that runs.
  absl::Time next_tick_ = absl::InfinitePast();
};

}  // namespace muster

#endif  // COMMON_RPC_TCP_SOCKET_LOOP_H_
