#ifndef TESTS_TESTING_FAKE_PARAMETER_LINK_H_
#define TESTS_TESTING_FAKE_PARAMETER_LINK_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "common/rpc/parameter_link.h"
#include "common/rpc/served_calls.h"

namespace muster {

// A ps task in memory, reached over a network that loses messages: its
// parameters are float32, a push adds the gradient, exactly once for each
// (step, part). A token brings it to its round; a push of an earlier round is
// late, a snapshot of one aborted. Rows of tables are zeros until they are
// pushed to. Answers at once, on the caller's thread. Thread-safe.
class FakeShard {
 public:
  struct Faults {
    uint32_t seed = 1;
    // How many of 100 requests are lost, of 100 answers are lost, and of 100
    // requests arrive twice.
    uint32_t lost_requests = 0;
    uint32_t lost_answers = 0;
    uint32_t duplicates = 0;
  };

  explicit FakeShard(const Faults& faults)
      : faults_(faults), random_(faults.seed) {}

  // Every later request gets this error, until it is set to OK.
  void FailWith(const absl::Status& status) {
    absl::MutexLock lock(&mu_);
    failure_ = status;
  }
  // Every later request is carried out, and gets this error, until it is set to
  // OK.
  void AnswerWith(const absl::Status& status) {
    absl::MutexLock lock(&mu_);
    answer_ = status;
  }
  // Keeps pushed frames, as a slow transport would, until it is called again.
  void KeepFrames(bool keep) {
    std::vector<absl::Cord> dropped;  // destroyed without the lock
    absl::MutexLock lock(&mu_);
    keep_ = keep;
    if (!keep) dropped.swap(kept_);
  }
  std::string values(const std::string& tensor) const {
    absl::MutexLock lock(&mu_);
    const auto it = values_.find(tensor);
    return it == values_.end() ? "" : it->second;
  }
  // Empty if nobody has pushed to it, or loaded it.
  std::vector<float> row(const std::string& table, int64_t id) const {
    absl::MutexLock lock(&mu_);
    const auto rows = rows_.find(table);
    if (rows == rows_.end()) return {};
    const auto it = rows->second.find(id);
    return it == rows->second.end() ? std::vector<float>() : it->second;
  }
  // Requests for rows that arrived.
  int64_t row_pulls() const {
    absl::MutexLock lock(&mu_);
    return row_pulls_;
  }
  // Brings the shard to this round, as another worker's token would.
  void AdvanceToRound(int64_t round) {
    absl::MutexLock lock(&mu_);
    round_ = std::max(round_, round);
  }
  int64_t round() const {
    absl::MutexLock lock(&mu_);
    return round_;
  }
  // Requests that arrived.
  int64_t pulls() const {
    absl::MutexLock lock(&mu_);
    return pulls_;
  }
  // The newest push's factor of the learning rate, which has no effect here.
  double learning_rate_factor() const {
    absl::MutexLock lock(&mu_);
    return learning_rate_factor_;
  }
  int64_t duplicates() const {
    absl::MutexLock lock(&mu_);
    return duplicates_;
  }

 private:
  friend class FakeParameterLink;
  using Slices = google::protobuf::RepeatedPtrField<TensorSlice>;

  // Runs `handle` as often as the request arrives; the answer that came back.
  template <typename Reply, typename Handle>
  absl::StatusOr<Reply> Receive(Handle handle) {
    absl::MutexLock lock(&mu_);
    if (!failure_.ok()) return failure_;
    if (Chance(faults_.lost_requests)) return absl::UnavailableError("lost");
    absl::StatusOr<Reply> reply = handle();
    if (Chance(faults_.duplicates)) reply = handle();
    if (Chance(faults_.lost_answers)) return absl::UnavailableError("lost");
    if (!answer_.ok()) return answer_;
    return reply;
  }
  // A push's effect and answer.
  PushReply Apply(const PushPart& header, const std::string& data)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Cord Values(const Slices& slices) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Adds the gradients of a push of rows.
  void AddRows(const PushPart& header, const std::string& data)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void LoadRows(const RowRun& run, const std::string& data)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Cord Rows(const PullRowsRequest& header, const std::string& ids)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool Chance(uint32_t percent) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return random_() % 100 < percent;
  }

  const Faults faults_;
  mutable absl::Mutex mu_;
  std::mt19937 random_ ABSL_GUARDED_BY(mu_);
  absl::Status failure_ ABSL_GUARDED_BY(mu_);
  absl::Status answer_ ABSL_GUARDED_BY(mu_);
  bool keep_ ABSL_GUARDED_BY(mu_) = false;
  std::vector<absl::Cord> kept_ ABSL_GUARDED_BY(mu_);
  std::map<std::string, std::string> values_ ABSL_GUARDED_BY(mu_);
  std::set<std::pair<int64_t, int32_t>> applied_ ABSL_GUARDED_BY(mu_);
  // The steps of which a part was applied, and their staleness.
  std::map<int64_t, int64_t> steps_ ABSL_GUARDED_BY(mu_);
  // By table.
  std::map<std::string, size_t> dims_ ABSL_GUARDED_BY(mu_);
  std::map<std::string, std::map<int64_t, std::vector<float>>> rows_
      ABSL_GUARDED_BY(mu_);
  int64_t row_pulls_ ABSL_GUARDED_BY(mu_) = 0;
  int64_t version_ ABSL_GUARDED_BY(mu_) = 0;
  int64_t pulls_ ABSL_GUARDED_BY(mu_) = 0;
  int64_t duplicates_ ABSL_GUARDED_BY(mu_) = 0;
  double learning_rate_factor_ ABSL_GUARDED_BY(mu_) = 0;
  // The newest of any token.
  int64_t round_ ABSL_GUARDED_BY(mu_) = 0;
};

// The way to a FakeShard, which outlives it.
class FakeParameterLink : public ParameterLink {
 public:
  explicit FakeParameterLink(FakeShard* shard);

  void CallBytes(const AnyMethod& method, std::string request,
                 absl::Time deadline,
                 ReplyCallback<std::string> done) override {
    calls_.CallBytes(method, std::move(request), deadline, std::move(done));
  }
  void Load(Frame<LoadPart> request, absl::Time,
            ReplyCallback<LoadReply> done) override;
  void Pull(const PullRequest& request, absl::Time,
            ReplyCallback<Frame<PullReply>> done) override;
  void Push(Frame<PushPart> request, absl::Time,
            ReplyCallback<Frame<PushReply>> done) override;
  void PullRows(Frame<PullRowsRequest> request, absl::Time,
                ReplyCallback<Frame<PullRowsReply>> done) override;
  void ReadSnapshot(const ReadSnapshotRequest& request, absl::Time,
                    ReplyCallback<Frame<SnapshotPart>> done) override;

 private:
  absl::StatusOr<DefineReply> Define(const DefineRequest& request);
  absl::StatusOr<BeginSnapshotReply> BeginSnapshot(
      const BeginSnapshotRequest& request);

  FakeShard& shard_;
  ServedCalls calls_;
};

}  // namespace muster

#endif  // TESTS_TESTING_FAKE_PARAMETER_LINK_H_
