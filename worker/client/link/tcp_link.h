#ifndef WORKER_CLIENT_LINK_TCP_LINK_H_
#define WORKER_CLIENT_LINK_TCP_LINK_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/base/file_descriptor.h"
#include "common/base/reporter.h"
#include "common/rpc/backoff.h"
#include "common/rpc/byte_channel.h"
#include "common/rpc/parameter_link.h"
#include "common/tensor/buffer_pool.h"
#include "proto/tcp_link_service.pb.h"
#include "worker/client/link/peer_failure.h"
#include "worker/client/link/tcp_caller.h"

namespace muster {

// A ParameterLink whose messages with tensors (Load, Pull, Push, PullRows,
// ReadSnapshot) go over a TCP connection of their own; the rest goes over
// another link. The
// first of them connects, and those that come meanwhile wait for it, some
// seconds past their deadline in the worst case. Without a connection tensors
// go over the other link, too, and it is tried again after pauses; where TCP is
// required they fail, and so does Hello.
//
// A call that was on its way when the connection was lost fails with
// Unavailable: nothing is repeated here. One thread of its own connects and
// delivers answers.
class TcpLink : public ParameterLink {
 public:
  struct Options {
    PeerName peer;
    // The channel over a connected socket.
    std::function<absl::StatusOr<std::unique_ptr<ByteChannel>>(FileDescriptor)>
        open;
    // Never another way for tensors.
    bool required = false;
    // For one attempt to connect.
    absl::Duration patience = absl::Seconds(3);
    // Between attempts, while the other link carries the tensors.
    Backoff::Options pauses = {absl::Seconds(2), absl::Seconds(30),
                               absl::Seconds(1)};
    // With keys a connection is replaced after so long: each shows certificates
    // once, and the peer's may have ended since.
    absl::Duration keyed_age = absl::Minutes(5);
    // Gets a line whenever the way of the tensors changes, and why. On any
    // thread.
    Reporter reporter;
    // Monotonic; outlives the link.
    const Clock* clock = nullptr;
  };

  TcpLink(Options options, std::unique_ptr<ParameterLink> other);
  // Ends every call; their callbacks have run when it returns. REQUIRES: not
  // called from a callback.
  ~TcpLink() override;

  int64_t best_part_bytes() const override;
  void CallBytes(const AnyMethod& method, std::string request,
                 absl::Time deadline, ReplyCallback<std::string> done) override;
  void Load(Frame<LoadPart> request, absl::Time deadline,
            ReplyCallback<LoadReply> done) override;
  void Pull(const PullRequest& request, absl::Time deadline,
            ReplyCallback<Frame<PullReply>> done) override;
  void Push(Frame<PushPart> request, absl::Time deadline,
            ReplyCallback<Frame<PushReply>> done) override;
  void PullRows(Frame<PullRowsRequest> request, absl::Time deadline,
                ReplyCallback<Frame<PullRowsReply>> done) override;
  void ReadSnapshot(const ReadSnapshotRequest& request, absl::Time deadline,
                    ReplyCallback<Frame<SnapshotPart>> done) override;
  void PullTo(std::shared_ptr<ValuePlace> place, const PullRequest& request,
              absl::Time deadline,
              ReplyCallback<Frame<PullReply>> done) override;
  void PushTo(std::shared_ptr<ValuePlace> place, Frame<PushPart> request,
              absl::Time deadline,
              ReplyCallback<Frame<PushReply>> done) override;
  absl::StatusOr<std::shared_ptr<const char>> MapParameters(
      const Fence& fence, int64_t size_bytes) override {
    return other_->MapParameters(fence, size_bytes);
  }

 private:
  // What carries a call.
  struct Way {
    // Null: the other link, if `missing` is OK.
    std::shared_ptr<TcpCaller> tcp;
    // The call's error.
    absl::Status missing;
  };
  using Start = std::function<void(const Way& way)>;

  // Starts a call, now or when the way is known. Runs `start` with no lock
  // held.
  void Begin(Start start);
  // A Hello where TCP is required.
  void Greet(std::string request, absl::Time deadline,
             const ReplyCallback<HelloReply>& done);

  // The thread.
  void Run();
  // Waits until a connection is wanted; false when the link ends.
  bool AwaitTurn();
  void Attempt();
  // Waits for it.
  absl::StatusOr<TcpOffer> AskForOffer();
  absl::StatusOr<std::unique_ptr<ByteChannel>> Connect(const TcpOffer& offer);
  // Until it is lost.
  void Serve(std::unique_ptr<ByteChannel> channel);
  // The next call begins with another one.
  void ForgetConnection();
  // There is no TCP for now, and `why`.
  void GoWithout(const absl::Status& why);
  // Starts the calls that wait, and until `retry_at` those to come.
  void Settle(const Way& way, absl::Time retry_at, const std::string& line);
  // Nothing for "", or for what was reported last.
  void Report(const std::string& line);
  bool is_closing() const;

  // Constant after construction.
  const Options options_;
  // An eventfd: readable when the link ends.
  const FileDescriptor stop_;

  // Own synchronisation.
  BufferPool pool_;

  // Used by the thread.
  Backoff pauses_;
  std::string reported_;

  mutable absl::Mutex mu_;
  bool closing_ ABSL_GUARDED_BY(mu_) = false;
  // Null while there is no connection.
  std::shared_ptr<TcpCaller> tcp_ ABSL_GUARDED_BY(mu_);
  // Calls that wait for a connection, or for why there is none.
  std::vector<Start> waiting_ ABSL_GUARDED_BY(mu_);
  // The next attempt, while the other link carries the tensors; infinite: with
  // the next call.
  absl::Time retry_at_ ABSL_GUARDED_BY(mu_) = absl::InfiniteFuture();
  std::optional<absl::StatusOr<TcpOffer>> offer_ ABSL_GUARDED_BY(mu_);

  // Own synchronisation. Its last callbacks may still call this.
  const std::unique_ptr<ParameterLink> other_;

  // Last: uses all of the above.
  std::unique_ptr<ClockThread> thread_;
};

}  // namespace muster

#endif  // WORKER_CLIENT_LINK_TCP_LINK_H_
