#ifndef PS_SERVER_COORDINATOR_CUT_LOG_H_
#define PS_SERVER_COORDINATOR_CUT_LOG_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "proto/coordination_service.pb.h"
#include "proto/parameter_service.pb.h"
#include "proto/row_ledger.pb.h"
#include "ps_server/caller/task_name.h"
#include "ps_server/coordinator/step_rounds.h"

namespace muster {

// The rows of the steps that were counted since the chief began to cut the
// shards, each at its own instant: the cuts need not have these steps. Not
// thread-safe; no clock.
class CutLog {
 public:
  using HeldSteps = google::protobuf::RepeatedPtrField<HeldStep>;

  // Steps and their rows.
  struct Repeated {
    int64_t steps = 0;
    int64_t rows = 0;
  };

  // More than are counted while shards are cut. The cut of a chief that does
  // not come to its end is forgotten then.
  static constexpr size_t kMaxSteps = 1'000'000;

  void Begin();
  void Clear();
  bool has_begun() const { return has_begun_; }

  // Without effect unless a cut has begun.
  void Add(const std::vector<Delivery>& steps);
  // The rows of the steps that a cut with `counted` does not have.
  std::vector<RowLease> RowsBehind(const HeldSteps& counted) const;
  // How many of them, of each task, some shard may have: those of steps up to
  // `begun`.
  std::map<TaskKey, Repeated> CountBegunBehind(const HeldSteps& counted,
                                               const HeldSteps& begun) const;

 private:
  struct Step {
    Sender sender;
    int64_t step = 0;
    RowLease rows;
  };

  using NewestSteps = std::map<TaskKey, const HeldStep*>;

  static NewestSteps ByTask(const HeldSteps& steps);
  static bool IsUpTo(const NewestSteps& newest, const Step& step);

  bool has_begun_ = false;
  std::vector<Step> steps_;
};

}  // namespace muster

#endif  // PS_SERVER_COORDINATOR_CUT_LOG_H_
