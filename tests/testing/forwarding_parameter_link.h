#ifndef TESTS_TESTING_FORWARDING_PARAMETER_LINK_H_
#define TESTS_TESTING_FORWARDING_PARAMETER_LINK_H_

#include <cstdint>
#include <memory>
#include <string>
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

  void CallBytes(const AnyMethod& method, std::string request,
                 absl::Time deadline,
                 ReplyCallback<std::string> done) override {
    link_->CallBytes(method, std::move(request), deadline, std::move(done));
  }
  void Load(Frame<LoadPart> request, absl::Time deadline,
            ReplyCallback<LoadReply> done) override {
    link_->Load(std::move(request), deadline, std::move(done));
  }
  void Pull(const PullRequest& request, absl::Time deadline,
            ReplyCallback<Frame<PullReply>> done) final {
    PullTo(nullptr, request, deadline, std::move(done));
  }
  void Push(Frame<PushPart> request, absl::Time deadline,
            ReplyCallback<Frame<PushReply>> done) final {
    PushTo(nullptr, std::move(request), deadline, std::move(done));
  }
  // Pulls and pushes with a place for the values, and (null) without.
  void PullTo(std::shared_ptr<ValuePlace> place, const PullRequest& request,
              absl::Time deadline,
              ReplyCallback<Frame<PullReply>> done) override {
    if (place == nullptr) {
      return link_->Pull(request, deadline, std::move(done));
    }
    link_->PullTo(std::move(place), request, deadline, std::move(done));
  }
  void PushTo(std::shared_ptr<ValuePlace> place, Frame<PushPart> request,
              absl::Time deadline,
              ReplyCallback<Frame<PushReply>> done) override {
    if (place == nullptr) {
      return link_->Push(std::move(request), deadline, std::move(done));
    }
    link_->PushTo(std::move(place), std::move(request), deadline,
                  std::move(done));
  }
  void PullRows(Frame<PullRowsRequest> request, absl::Time deadline,
                ReplyCallback<Frame<PullRowsReply>> done) override {
    link_->PullRows(std::move(request), deadline, std::move(done));
  }
  void ReadSnapshot(const ReadSnapshotRequest& request, absl::Time deadline,
                    ReplyCallback<Frame<SnapshotPart>> done) override {
    link_->ReadSnapshot(request, deadline, std::move(done));
  }

  int64_t best_part_bytes() const override { return link_->best_part_bytes(); }
  int best_window_parts() const override { return link_->best_window_parts(); }
  absl::StatusOr<std::shared_ptr<const char>> MapParameters(
      const Fence& fence, int64_t size_bytes) override {
    return link_->MapParameters(fence, size_bytes);
  }

 private:
  ParameterLink* const link_;
};

}  // namespace muster

#endif  // TESTS_TESTING_FORWARDING_PARAMETER_LINK_H_
