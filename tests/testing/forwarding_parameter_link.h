#ifndef TESTS_TESTING_FORWARDING_PARAMETER_LINK_H_
#define TESTS_TESTING_FORWARDING_PARAMETER_LINK_H_

#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/rpc/parameter_link.h"

namespace muster {

// Passes every call on to another link as it is; for links that do something of
// their own to a few calls. Thread-safe.
class ForwardingParameterLink : public ParameterLink {
 public:
  // `link` outlives the calls.
  explicit ForwardingParameterLink(ParameterLink* link) : link_(link) {}

  void Hello(const HelloRequest& request, absl::Time deadline,
             ReplyCallback<HelloReply> done) override {
    link_->Hello(request, deadline, std::move(done));
  }
  void Define(const DefineRequest& request, absl::Time deadline,
              ReplyCallback<DefineReply> done) override {
    link_->Define(request, deadline, std::move(done));
  }
  void Load(Frame<LoadPart> request, absl::Time deadline,
            ReplyCallback<LoadReply> done) override {
    link_->Load(std::move(request), deadline, std::move(done));
  }
  void Seal(const SealRequest& request, absl::Time deadline,
            ReplyCallback<SealReply> done) override {
    link_->Seal(request, deadline, std::move(done));
  }
  void Pull(const PullRequest& request, absl::Time deadline,
            ReplyCallback<Frame<PullReply>> done) override {
    link_->Pull(request, deadline, std::move(done));
  }
  void Push(Frame<PushPart> request, absl::Time deadline,
            ReplyCallback<Frame<PushReply>> done) override {
    link_->Push(std::move(request), deadline, std::move(done));
  }
  void BeginSnapshot(const BeginSnapshotRequest& request, absl::Time deadline,
                     ReplyCallback<BeginSnapshotReply> done) override {
    link_->BeginSnapshot(request, deadline, std::move(done));
  }
  void ReadSnapshot(const ReadSnapshotRequest& request, absl::Time deadline,
                    ReplyCallback<Frame<SnapshotPart>> done) override {
    link_->ReadSnapshot(request, deadline, std::move(done));
  }
  void EndSnapshot(const EndSnapshotRequest& request, absl::Time deadline,
                   ReplyCallback<EndSnapshotReply> done) override {
    link_->EndSnapshot(request, deadline, std::move(done));
  }

  int64_t best_part_bytes() const override { return link_->best_part_bytes(); }
  absl::StatusOr<std::shared_ptr<const char>> MapParameters(
      const Fence& fence, int64_t size_bytes) override {
    return link_->MapParameters(fence, size_bytes);
  }

 private:
  ParameterLink* const link_;
};

}  // namespace muster

#endif  // TESTS_TESTING_FORWARDING_PARAMETER_LINK_H_
