#ifndef PS_SERVER_COORDINATOR_ROW_LEASES_H_
#define PS_SERVER_COORDINATOR_ROW_LEASES_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/container/node_hash_map.h"
#include "common/base/max_count.h"
#include "proto/coordination_service.pb.h"
#include "proto/row_ledger.pb.h"
#include "ps_server/caller/task_name.h"
#include "ps_server/coordinator/row_set.h"
#include "ps_server/coordinator/stream_passes.h"

namespace muster {

// The leases of rows that a worker wants.
struct LeaseWish {
  // Rows of one of its steps; 0: no rows at all.
  int64_t step_rows = 0;
  // Leases beside that of its step.
  int32_t ahead = 0;
};

// The rows of the run (proto/row_ledger.proto), and who has which. Each place
// before the front is done, or given back, or in the queue of one task, whose
// first lease is begun when its step is granted:
//
//   leases.SetWish(task, {32, 1});
//   if (leases.TryDeal(task)) leases.Begin(task);
//   leases.TryDealAhead(task);
//   ... leases.LeasesOf(task) ...
//   leases.Finish(task);
//
// Rows that are given back are dealt first, from the lowest place on. A lease
// that is not begun may be recalled at any time.
//
// A pure value: no clock inside. Not thread-safe.
class RowLeases {
 public:
  // ---- The epoch -----------------------------------------------------------
  // Starts an epoch without leases. No place from `limit` on is dealt;
  // `step_rows` are those of a task that has said nothing.
  // REQUIRES: CheckLedger(ledger) is OK, and limit <= kMaxCount.
  void Start(const RowLedger& ledger, int64_t limit, int64_t step_rows);
  void Clear() { *this = RowLeases(); }
  // Goes on with what it has, without leases. A data set that has other rows
  // than before goes on with its next epoch; returns whether that is so.
  bool Resume(int64_t epoch_rows, int64_t limit, int64_t step_rows);
  // Recalls what is not begun.
  void SetLimit(int64_t limit);

  // ---- Dealing -------------------------------------------------------------
  // Leases of another length that the task has not begun are recalled.
  void SetWish(const TaskKey& task, const LeaseWish& wish);
  // The wish of a task that has said nothing is the epoch's step, and as many
  // ahead as anybody wants.
  LeaseWish WishOf(const TaskKey& task) const;

  // Has the task a lease, or a step without rows? Deals it one if there is one.
  bool TryDealFirst(const TaskKey& task);
  // Appends a lease to the task's queue, if there are as many rows left.
  bool TryDeal(const TaskKey& task);
  // The same, if each task with a queue or a wish could have another one after
  // it.
  bool TryDealAhead(const TaskKey& task);
  // Are the rows those of a stream of unknown length?
  bool are_of_stream() const {
    return kind_ == "stream" || epoch_rows_ == 0;
  }
  // Are there as many rows left as a lease of `rows` has?
  bool CanDeal(int64_t rows) const { return rows == 0 || !Pick(rows).empty(); }
  // The longest step that a task wants, or has wanted.
  int64_t most_step_rows() const { return most_step_rows_; }

  // ---- Steps ---------------------------------------------------------------
  // The first lease is that of a granted step from here on. Without effect if
  // it is. REQUIRES: the task has a lease, or its step no rows.
  void Begin(const TaskKey& task);
  bool HasBegun(const TaskKey& task) const;
  // The begun lease's rows are done. REQUIRES: HasBegun(task).
  RowLease Finish(const TaskKey& task);
  // The same; its step was passed over.
  void Skip(const TaskKey& task);
  // The begun lease comes back, if there is one; those ahead stay.
  void GiveBack(const TaskKey& task);
  // Leases ahead of the begun one come back; all, if none is begun.
  void GiveBackAhead(const TaskKey& task);

  // ---- Tasks that leave ----------------------------------------------------
  // All leases come back, and the task is none of those that want rows. Returns
  // whether there were any. `may_repeat`: some shards may have the step of the
  // begun one, whose rows will be dealt again.
  bool Leave(const TaskKey& task, bool may_repeat);
  // The same of a task that may come back and report the step that it has
  // begun.
  bool Lapse(const TaskKey& task, bool may_repeat);
  bool HasLapsed(const TaskKey& task) const { return lapsed_.count(task) != 0; }
  // Are these the rows of the lapsed lease, while the task has begun others?
  bool IsOfLapsed(const TaskKey& task, const RowLease& rows) const;
  // Makes the lapsed lease the task's begun one again, if none of its rows was
  // dealt to others. REQUIRES: nothing is begun.
  bool TryReclaim(const TaskKey& task);
  void ForgetLapsed(const TaskKey& task) { lapsed_.erase(task); }
  // All leases that are not begun come back; but each task's first one stays.
  void RecallAhead();
  // Not even that.
  void Recall();
  // Tasks for which `is_there` does not hold, and that have begun nothing,
  // leave.
  void LeaveUnless(const std::function<bool(const TaskKey&)>& is_there);
  // Nobody has any, or had.
  void LeaveAll();

  // ---- Streams -------------------------------------------------------------
  // Notes where a pass begins, if that is news.
  void AddPass(const StreamPass& pass);
  // The newest that begins no later than `place`; pass 0 if none does.
  StreamPass PassBefore(int64_t place) const { return passes_.Before(place); }

  // ---- Figures -------------------------------------------------------------
  size_t NumLeases(const TaskKey& task) const;
  int64_t NumRowsOf(const TaskKey& task) const;
  // The task's begun lease, or the lapsed one; without ranges if there is none.
  RowLease BegunOf(const TaskKey& task) const;
  std::vector<RowLease> LeasesOf(const TaskKey& task) const;
  // The tasks that have begun a lease, in order.
  std::vector<TaskKey> Beginners() const;
  int64_t num_begun() const { return num_begun_; }
  // Leases that are not begun.
  int64_t num_waiting() const { return num_leases_ - num_begun_; }
  // Rows that may be dealt, those of leases that are not begun aside.
  int64_t NumLeft() const;
  RowCounts Counts() const;
  // As if the begun leases of `done` were done, and `undone` were not.
  RowLedger Ledger(const std::set<TaskKey>& done = {},
                   const std::vector<RowLease>& undone = {}) const;
  // What all this takes of memory.
  size_t MemoryBytes() const;

 private:
  struct Piece {
    int64_t first = 0;
    uint64_t rows : 63;
    // The last one of its lease.
    uint64_t is_last : 1;

    int64_t num_rows() const { return static_cast<int64_t>(rows); }
    int64_t end() const { return first + num_rows(); }
  };
  using Pieces = std::vector<Piece>;
  struct Task {
    LeaseWish wish;
    bool has_said = false;  // its wish
    bool has_begun = false;
    Pieces queue;  // lease after lease
  };
  struct Lapsed {
    Pieces lease;
    bool may_repeat = false;
  };

  static Piece MakePiece(int64_t first, int64_t rows);
  static int64_t RowsOf(const Pieces& pieces);
  // The number of leases that end in them.
  static int64_t NumLast(const Pieces& pieces);
  // The number of pieces of a queue's first lease.
  static size_t SizeOfFirst(const Pieces& queue);
  static std::vector<RowLease> ToLeases(const Pieces& queue);

  Task& FindOrAdd(const TaskKey& task);
  const Task* Find(const TaskKey& task) const;
  void ChangeWish(Task& task, const LeaseWish& wish);

  // The rows that a lease would have; none if there are too few.
  Pieces Pick(int64_t rows) const;
  // The same from as few pieces as can be.
  Pieces PickLargest(int64_t rows) const;
  bool TryDeal(Task& task);
  // Removes the begun lease from the task's queue, and returns it.
  Pieces PopBegun(Task& task);
  // Returns the pieces of the task's queue from the i-th on.
  void ReturnFrom(Task& task, size_t i);
  void Return(const Pieces& lease);
  int64_t FirstNotDone() const;

  std::string kind_;
  int64_t epoch_rows_ = 0;
  int64_t limit_ = kMaxCount;
  LeaseWish default_wish_;
  int64_t front_ = 0;
  RowSet returned_;
  absl::node_hash_map<TaskKey, Task> tasks_;
  std::map<TaskKey, Lapsed> lapsed_;
  int64_t num_leased_ = 0;  // rows
  int64_t num_leases_ = 0;
  int64_t num_begun_ = 0;
  int64_t step_rows_ = 0;       // the sum of all tasks'
  int64_t most_step_rows_ = 0;  // of one task, ever
  int64_t known_from_ = 0;      // as RowLedger's
  int64_t repeated_ = 0;
  int64_t skipped_ = 0;
  StreamPasses passes_;
};

}  // namespace muster

#endif  // PS_SERVER_COORDINATOR_ROW_LEASES_H_
