#ifndef WORKER_CLIENT_LINK_SHARED_MEMORY_LINK_H_
#define WORKER_CLIENT_LINK_SHARED_MEMORY_LINK_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "common/base/clock.h"
#include "common/base/reporter.h"
#include "common/rpc/frame/data_method.h"
#include "common/rpc/parameter_link.h"
#include "common/shared_memory/slot_ring.h"
#include "proto/shared_memory_service.pb.h"
#include "worker/client/link/peer_failure.h"
#include "worker/client/link/shared_memory_caller.h"

namespace muster {

// A ParameterLink to a ps that may be on this machine. What carries tensors
// (Load, Pull, Push, ReadSnapshot) goes through shared memory, the rest over
// another link. The memory is asked for with each Hello while there is none,
// before that is answered; it ends with the ps, and with another incarnation of
// it comes another. Without memory tensors go over the other link, too, which
// says how, unless memory is required: then Hello fails.
//
// One thread of its own connects and delivers answers.
class SharedMemoryLink : public ParameterLink {
 public:
  struct Options {
    PeerName peer;
    // Never another way for tensors.
    bool required = false;
    // Gets a line whenever the way of the tensors changes, and why. On any
    // thread.
    Reporter reporter;
    // Monotonic; outlives the link.
    const Clock* clock = nullptr;
  };

  SharedMemoryLink(Options options, std::unique_ptr<ParameterLink> other);
  // Ends every call; their callbacks have run when it returns. REQUIRES: not
  // called from a callback.
  ~SharedMemoryLink() override;

  int64_t best_part_bytes() const override;
  int best_window_parts() const override;
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
  // Values that come through memory are given where they lie in it.
  void PullTo(std::shared_ptr<ValuePlace> place, const PullRequest& request,
              absl::Time deadline,
              ReplyCallback<Frame<PullReply>> done) override;
  void PushTo(std::shared_ptr<ValuePlace> place, Frame<PushPart> request,
              absl::Time deadline,
              ReplyCallback<Frame<PushReply>> done) override;
  // Asks for an offer of its own. A ps that refuses two in a row is talked to
  // over the other link from there on, unless memory is required.
  absl::StatusOr<std::shared_ptr<const char>> MapParameters(
      const Fence& fence, int64_t size_bytes) override;

 private:
  // A Hello that was answered, and waits for the memory.
  struct Greeting {
    HelloReply reply;
    SharedMemoryOffer offer;
    ReplyCallback<HelloReply> done;
  };

  // Null while there is none.
  std::shared_ptr<SharedMemoryCaller> memory() const;
  absl::Status NoMemory() const;
  // Whether the call needs no other link: it went through memory, or was
  // refused since memory is required. Else `done` is left.
  template <typename Reply, typename Request>
  bool CallMemory(DataMethod method, const Request& request,
                  absl::Time deadline, ReplyCallback<Reply>* done);

  // A Hello, which is answered when there is memory, or when it is said why
  // not.
  void Greet(std::string request, absl::Time deadline,
             const ReplyCallback<HelloReply>& done);
  // False also if that ps has refused too often.
  bool WantsMemoryOf(uint64_t incarnation) const;
  void OnOffer(Greeting greeting,
               const absl::StatusOr<SharedMemoryOffer>& offer);
  // Answers the Hello: `memory` says whether there is memory, or why not.
  void Settle(const Greeting& greeting, const absl::Status& memory);
  void Say(const std::string& line);
  // After a loss: the other link carries the tensors now.
  void SayInstead();
  // `done`, which says that it does, if it did.
  template <typename Reply>
  ReplyCallback<Reply> SayIfAnswered(ReplyCallback<Reply> done);

  // Waits for it.
  absl::StatusOr<SharedMemoryOffer> AskForOffer();
  // The other link carries the tensors until another start of the ps. Returns
  // why.
  absl::Status GiveUpMemory(const absl::Status& why);

  // The thread.
  void Run();
  // The next Hello that waits; null when the link ends.
  std::unique_ptr<Greeting> AwaitGreeting();
  void Connect(const Greeting& greeting);
  // From now on tensors go through `caller`. Returns the other Hellos that wait
  // for the same ps.
  std::vector<Greeting> Use(const std::shared_ptr<SharedMemoryCaller>& caller,
                            const Greeting& greeting);
  // Serves what is connected until it is lost.
  void Deliver(const std::shared_ptr<SharedMemoryCaller>& caller);
  bool HasWork() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return closing_ || !greetings_.empty();
  }

  // Constant after construction.
  const Options options_;

  mutable absl::Mutex mu_;
  bool closing_ ABSL_GUARDED_BY(mu_) = false;
  std::deque<Greeting> greetings_ ABSL_GUARDED_BY(mu_);
  // Shared with answers that are still being read.
  std::shared_ptr<SharedMemoryCaller> memory_ ABSL_GUARDED_BY(mu_);
  // The ps that memory_ is of.
  uint64_t incarnation_ ABSL_GUARDED_BY(mu_) = 0;
  // The ps whose memory is not asked for any more; 0: none.
  uint64_t given_up_ ABSL_GUARDED_BY(mu_) = 0;
  std::string said_ ABSL_GUARDED_BY(mu_);
  // Why the memory was lost, until it is said what comes instead; else "".
  std::string lost_ ABSL_GUARDED_BY(mu_);

  // Own synchronisation. Its last callbacks may still call this.
  const std::unique_ptr<ParameterLink> other_;

  // Last: uses all of the above.
  std::unique_ptr<ClockThread> thread_;
};

}  // namespace muster

#endif  // WORKER_CLIENT_LINK_SHARED_MEMORY_LINK_H_
