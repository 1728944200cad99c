#include "ps_server/coordinator/row_leases.h"

#include <algorithm>
#include <cassert>
#include <iterator>
#include <utility>

#include "common/rows/row_ranges.h"

namespace muster {
namespace {

// About the bytes that the library's map and heap take beside each entry.
constexpr size_t kNodeBytes = 40;
constexpr size_t kBlockBytes = 16;

}  // namespace

// ---- Pieces ---------------------------------------------------------------

RowLeases::Piece RowLeases::MakePiece(int64_t first, int64_t rows) {
  Piece piece;
  piece.first = first;
  piece.rows = static_cast<uint64_t>(rows);
  piece.is_last = 0;
  return piece;
}

int64_t RowLeases::RowsOf(const Pieces& pieces) {
  int64_t rows = 0;
  for (const Piece& piece : pieces) rows += piece.num_rows();
  return rows;
}

int64_t RowLeases::NumLast(const Pieces& pieces) {
  return std::count_if(pieces.begin(), pieces.end(),
                       [](const Piece& p) { return p.is_last; });
}

size_t RowLeases::SizeOfFirst(const Pieces& queue) {
  const auto last = std::find_if(queue.begin(), queue.end(),
                                 [](const Piece& p) { return p.is_last; });
  return last == queue.end() ? 0 : last - queue.begin() + 1;
}

std::vector<RowLease> RowLeases::ToLeases(const Pieces& queue) {
  std::vector<RowLease> leases;
  bool is_first = true;
  for (const Piece& piece : queue) {
    if (std::exchange(is_first, piece.is_last)) leases.emplace_back();
    RowRange& range = *leases.back().add_ranges();
    range.set_first(piece.first);
    range.set_rows(piece.num_rows());
  }
  return leases;
}

// ---- The epoch ------------------------------------------------------------

void RowLeases::Start(const RowLedger& ledger, int64_t limit,
                      int64_t step_rows) {
  Clear();
  kind_ = ledger.kind();
  epoch_rows_ = ledger.epoch_rows();
  if (kind_.empty() && epoch_rows_ > 0) kind_ = "rows";
  limit_ = limit;
  default_wish_.step_rows = most_step_rows_ = step_rows;
  front_ = ledger.front();
  for (const RowRange& range : ledger.undone()) {
    returned_.Add(range.first(), range.rows());
  }
  known_from_ = ledger.known_from();
  repeated_ = ledger.repeated();
  skipped_ = ledger.skipped();
  for (const StreamPass& pass : ledger.passes()) {
    passes_.Add(pass);
  }
}

bool RowLeases::Resume(int64_t epoch_rows, int64_t limit, int64_t step_rows) {
  LeaveAll();
  limit_ = limit;
  default_wish_.step_rows = step_rows;
  most_step_rows_ = std::max(most_step_rows_, step_rows);
  if (epoch_rows == 0 || epoch_rows_ == 0) return false;
  if (epoch_rows == epoch_rows_) return false;
  front_ = (front_ + epoch_rows_ - 1) / epoch_rows_ * epoch_rows;
  known_from_ = front_;
  epoch_rows_ = epoch_rows;
  returned_.Clear();
  return true;
}

void RowLeases::SetLimit(int64_t limit) {
  limit_ = limit;
  Recall();
}

// ---- Tasks ----------------------------------------------------------------

RowLeases::Task& RowLeases::FindOrAdd(const TaskKey& task) {
  const auto [entry, is_new] = tasks_.try_emplace(task);
  if (is_new) ChangeWish(entry->second, default_wish_);
  return entry->second;
}

const RowLeases::Task* RowLeases::Find(const TaskKey& task) const {
  const auto it = tasks_.find(task);
  return it == tasks_.end() ? nullptr : &it->second;
}

void RowLeases::ChangeWish(Task& task, const LeaseWish& wish) {
  step_rows_ += wish.step_rows - task.wish.step_rows;
  most_step_rows_ = std::max(most_step_rows_, wish.step_rows);
  task.wish = wish;
}

void RowLeases::SetWish(const TaskKey& task, const LeaseWish& wish) {
  Task& entry = FindOrAdd(task);
  LeaseWish full = wish;
  if (full.step_rows == 0) full.step_rows = default_wish_.step_rows;
  default_wish_.ahead = std::max(default_wish_.ahead, wish.ahead);
  if (full.step_rows != entry.wish.step_rows) GiveBackAhead(task);
  ChangeWish(entry, full);
  entry.has_said = true;
}

LeaseWish RowLeases::WishOf(const TaskKey& task) const {
  const Task* const entry = Find(task);
  return entry == nullptr || !entry->has_said ? default_wish_ : entry->wish;
}

// ---- Dealing --------------------------------------------------------------

RowLeases::Pieces RowLeases::Pick(int64_t rows) const {
  Pieces lease;
  if (rows == 0 || NumLeft() < rows) return lease;
  for (const auto& [first, returned] : returned_.ranges()) {
    if (rows == 0 || first >= limit_ || lease.size() + 1 == kMaxLeaseRanges) {
      break;
    }
    lease.push_back(
        MakePiece(first, std::min({rows, returned, limit_ - first})));
    rows -= lease.back().num_rows();
  }
  if (rows > 0 && rows > limit_ - front_)
    return PickLargest(rows + RowsOf(lease));
  if (rows > 0) lease.push_back(MakePiece(front_, rows));
  lease.back().is_last = 1;
  return lease;
}

RowLeases::Pieces RowLeases::PickLargest(int64_t rows) const {
  Pieces pieces;
  for (const auto& [first, returned] : returned_.ranges()) {
    if (first >= limit_) break;
    pieces.push_back(MakePiece(first, std::min(returned, limit_ - first)));
  }
  if (front_ < limit_) pieces.push_back(MakePiece(front_, limit_ - front_));
  const size_t most = std::min<size_t>(pieces.size(), kMaxLeaseRanges);
  std::partial_sort(
      pieces.begin(), pieces.begin() + most, pieces.end(),
      [](const Piece& a, const Piece& b) { return a.rows > b.rows; });
  pieces.resize(most);
  Pieces lease;
  for (Piece& piece : pieces) {
    if (rows == 0) break;
    piece.rows = std::min<uint64_t>(piece.rows, rows);
    rows -= piece.num_rows();
    lease.push_back(piece);
  }
  if (rows > 0) return {};
  std::sort(lease.begin(), lease.end(),
            [](const Piece& a, const Piece& b) { return a.first < b.first; });
  lease.back().is_last = 1;
  return lease;
}

bool RowLeases::TryDeal(Task& task) {
  const LeaseWish& wish = task.has_said ? task.wish : default_wish_;
  const Pieces lease = Pick(wish.step_rows);
  for (const Piece& piece : lease) {
    if (piece.first == front_) {
      front_ = piece.end();
    } else {
      returned_.Remove(piece.first, piece.num_rows());
    }
    num_leased_ += piece.num_rows();
    task.queue.push_back(piece);
  }
  if (!lease.empty()) ++num_leases_;
  return !lease.empty();
}

bool RowLeases::TryDeal(const TaskKey& task) {
  return TryDeal(FindOrAdd(task));
}

bool RowLeases::TryDealFirst(const TaskKey& task) {
  Task& entry = FindOrAdd(task);
  return !entry.queue.empty() || WishOf(task).step_rows == 0 || TryDeal(entry);
}

bool RowLeases::TryDealAhead(const TaskKey& task) {
  Task& entry = FindOrAdd(task);
  return NumLeft() - entry.wish.step_rows >= step_rows_ && TryDeal(entry);
}

// ---- Steps ----------------------------------------------------------------

void RowLeases::Begin(const TaskKey& task) {
  Task& entry = FindOrAdd(task);
  assert(!entry.queue.empty() || entry.wish.step_rows == 0);
  if (!std::exchange(entry.has_begun, true)) ++num_begun_;
}

bool RowLeases::HasBegun(const TaskKey& task) const {
  const Task* const entry = Find(task);
  return entry != nullptr && entry->has_begun;
}

RowLeases::Pieces RowLeases::PopBegun(Task& task) {
  assert(task.has_begun);
  task.has_begun = false;
  --num_begun_;
  const auto end = task.queue.begin() + SizeOfFirst(task.queue);
  Pieces lease(task.queue.begin(), end);
  task.queue.erase(task.queue.begin(), end);
  num_leased_ -= RowsOf(lease);
  if (!lease.empty()) --num_leases_;
  return lease;
}

RowLease RowLeases::Finish(const TaskKey& task) {
  const std::vector<RowLease> lease = ToLeases(PopBegun(FindOrAdd(task)));
  return lease.empty() ? RowLease() : lease.front();
}

void RowLeases::Skip(const TaskKey& task) {
  skipped_ += RowsOf(PopBegun(FindOrAdd(task)));
}

void RowLeases::GiveBack(const TaskKey& task) {
  if (HasBegun(task)) Return(PopBegun(FindOrAdd(task)));
}

void RowLeases::GiveBackAhead(const TaskKey& task) {
  const auto it = tasks_.find(task);
  if (it == tasks_.end()) return;
  Task& entry = it->second;
  ReturnFrom(entry, entry.has_begun ? SizeOfFirst(entry.queue) : 0);
}

// ---- Tasks that leave -----------------------------------------------------

bool RowLeases::Leave(const TaskKey& task, bool may_repeat) {
  const bool had_any = Lapse(task, may_repeat);
  ForgetLapsed(task);
  return had_any;
}

bool RowLeases::Lapse(const TaskKey& task, bool may_repeat) {
  const auto it = tasks_.find(task);
  if (it == tasks_.end()) return false;
  Task& entry = it->second;
  const bool had_any = entry.has_begun || !entry.queue.empty();
  if (entry.has_begun) {
    Lapsed& lapsed = lapsed_[task];
    lapsed = {PopBegun(entry), may_repeat};
    Return(lapsed.lease);
    if (may_repeat) repeated_ += RowsOf(lapsed.lease);
  }
  ReturnFrom(entry, 0);
  ChangeWish(entry, {});
  tasks_.erase(it);
  return had_any;
}

bool RowLeases::IsOfLapsed(const TaskKey& task, const RowLease& rows) const {
  const auto it = lapsed_.find(task);
  if (it == lapsed_.end() || !HasBegun(task)) return false;
  const std::vector<RowLease> leases = ToLeases(it->second.lease);
  return !leases.empty() && rows == leases.front() && rows != BegunOf(task);
}

bool RowLeases::TryReclaim(const TaskKey& task) {
  const auto it = lapsed_.find(task);
  if (it == lapsed_.end() ||
      !std::all_of(it->second.lease.begin(), it->second.lease.end(),
                   [this](const Piece& p) {
                     return returned_.Contains(p.first, p.num_rows());
                   })) {
    return false;
  }
  assert(!HasBegun(task));
  const Lapsed lapsed = std::move(it->second);
  lapsed_.erase(it);
  Task& entry = FindOrAdd(task);
  for (const Piece& piece : lapsed.lease) {
    returned_.Remove(piece.first, piece.num_rows());
  }
  const int64_t rows = RowsOf(lapsed.lease);
  entry.queue.insert(entry.queue.begin(), lapsed.lease.begin(),
                     lapsed.lease.end());
  num_leased_ += rows;
  ++num_leases_;
  if (lapsed.may_repeat) repeated_ -= rows;
  entry.has_begun = true;
  ++num_begun_;
  return true;
}

void RowLeases::RecallAhead() {
  for (auto& [task, entry] : tasks_) {
    ReturnFrom(entry, SizeOfFirst(entry.queue));
  }
}

void RowLeases::Recall() {
  for (const auto& [task, entry] : tasks_) GiveBackAhead(task);
}

void RowLeases::LeaveUnless(
    const std::function<bool(const TaskKey&)>& is_there) {
  std::vector<TaskKey> absent;
  for (const auto& [task, entry] : tasks_) {
    if (!entry.has_begun && !is_there(task)) absent.push_back(task);
  }
  for (const TaskKey& task : absent) Lapse(task, /*may_repeat=*/false);
}

void RowLeases::LeaveAll() {
  while (!tasks_.empty()) {
    Leave(TaskKey(tasks_.begin()->first), /*may_repeat=*/false);
  }
  lapsed_.clear();
}

void RowLeases::Return(const Pieces& lease) {
  for (const Piece& piece : lease) {
    returned_.Add(piece.first, piece.num_rows());
  }
}

void RowLeases::ReturnFrom(Task& task, size_t i) {
  const auto begin = task.queue.begin() + i;
  const Pieces leases(begin, task.queue.end());
  task.queue.erase(begin, task.queue.end());
  num_leased_ -= RowsOf(leases);
  num_leases_ -= NumLast(leases);
  Return(leases);
}

int64_t RowLeases::NumLeft() const {
  return (front_ <= limit_ ? returned_.num_rows()
                           : returned_.NumRowsBelow(limit_)) +
         std::max<int64_t>(0, limit_ - front_);
}

// ---- Streams --------------------------------------------------------------

int64_t RowLeases::FirstNotDone() const {
  const RowSet::Ranges& returned = returned_.ranges();
  int64_t first = returned.empty() ? front_ : returned.begin()->first;
  for (const auto& [task, entry] : tasks_) {
    for (const Piece& piece : entry.queue) first = std::min(first, piece.first);
  }
  return first;
}

void RowLeases::AddPass(const StreamPass& pass) {
  if (!passes_.Add(pass)) return;
  kind_ = "stream";
  passes_.ForgetBefore(FirstNotDone());
}

// ---- Figures --------------------------------------------------------------

size_t RowLeases::NumLeases(const TaskKey& task) const {
  const Task* const entry = Find(task);
  if (entry == nullptr) return 0;
  return NumLast(entry->queue);
}

int64_t RowLeases::NumRowsOf(const TaskKey& task) const {
  const Task* const entry = Find(task);
  return entry == nullptr ? 0 : RowsOf(entry->queue);
}

RowLease RowLeases::BegunOf(const TaskKey& task) const {
  const auto lapsed = lapsed_.find(task);
  Pieces lease;
  if (HasBegun(task)) {
    lease = Find(task)->queue;
    lease.resize(SizeOfFirst(lease));
  } else if (lapsed != lapsed_.end()) {
    lease = lapsed->second.lease;
  }
  return lease.empty() ? RowLease() : ToLeases(lease).front();
}

std::vector<RowLease> RowLeases::LeasesOf(const TaskKey& task) const {
  const Task* const entry = Find(task);
  return entry == nullptr ? std::vector<RowLease>() : ToLeases(entry->queue);
}

std::vector<TaskKey> RowLeases::Beginners() const {
  std::vector<TaskKey> tasks;
  for (const auto& [task, entry] : tasks_) {
    if (entry.has_begun) tasks.push_back(task);
  }
  std::sort(tasks.begin(), tasks.end());
  return tasks;
}

RowCounts RowLeases::Counts() const {
  RowCounts counts;
  counts.set_epoch_rows(epoch_rows_);
  counts.set_done(front_ - returned_.num_rows() - num_leased_);
  counts.set_leased(num_leased_);
  counts.set_returned(returned_.num_rows());
  counts.set_repeated(repeated_);
  counts.set_skipped(skipped_);
  counts.set_known_from(known_from_);
  return counts;
}

RowLedger RowLeases::Ledger(const std::set<TaskKey>& done,
                            const std::vector<RowLease>& undone) const {
  RowSet all = returned_;
  for (const auto& [task, entry] : tasks_) {
    const bool counts = entry.has_begun && done.count(task) != 0;
    for (size_t i = counts ? SizeOfFirst(entry.queue) : 0;
         i < entry.queue.size(); ++i) {
      all.Add(entry.queue[i].first, entry.queue[i].num_rows());
    }
  }
  for (const RowLease& lease : undone) {
    for (const RowRange& range : lease.ranges()) {
      all.Add(range.first(), range.rows());
    }
  }
  RowLedger ledger;
  ledger.set_kind(kind_);
  ledger.set_epoch_rows(epoch_rows_);
  ledger.set_front(front_);
  for (const auto& [first, rows] : all.ranges()) {
    RowRange& range = *ledger.add_undone();
    range.set_first(first);
    range.set_rows(rows);
  }
  ledger.set_repeated(repeated_);
  ledger.set_skipped(skipped_);
  ledger.set_known_from(known_from_);
  passes_.AddTo(ledger);
  return ledger;
}

size_t RowLeases::MemoryBytes() const {
  size_t bytes = sizeof(*this);
  bytes += returned_.ranges().size() *
           (kNodeBytes + sizeof(RowSet::Ranges::value_type));
  bytes += passes_.size() * (kNodeBytes + sizeof(StreamPasses::Pass));
  // A pointer and a byte a slot.
  bytes += tasks_.bucket_count() * 9;
  for (const auto& [task, entry] : tasks_) {
    bytes += sizeof(std::pair<const TaskKey, Task>) + 2 * kBlockBytes +
             entry.queue.capacity() * sizeof(Piece);
  }
  for (const auto& [task, lapsed] : lapsed_) {
    bytes += kNodeBytes + sizeof(std::pair<const TaskKey, Lapsed>) +
             kBlockBytes + lapsed.lease.capacity() * sizeof(Piece);
  }
  return bytes;
}

}  // namespace muster
