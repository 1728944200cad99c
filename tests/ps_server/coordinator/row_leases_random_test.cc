// Random deals, losses and returns against a plain model: whose each place is.
#include <cstdint>
#include <deque>
#include <map>
#include <random>
#include <set>
#include <vector>

#include "common/rows/row_ranges.h"
#include "gtest/gtest.h"
#include "ps_server/coordinator/row_leases.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

constexpr int kTasks = 5;

std::vector<int64_t> PlacesOf(const RowLease& lease) {
  std::vector<int64_t> places;
  for (int64_t i = 0; i < NumRows(lease); ++i) {
    places.push_back(PlaceOf(lease, i));
  }
  return places;
}

class RowLeasesRandomTest : public testing::TestWithParam<int> {
 protected:
  struct Worker {
    std::deque<std::vector<int64_t>> queue;
    bool has_begun = false;
    int64_t rows = kDefaultRows;
    std::vector<int64_t> lapsed;
  };
  static constexpr int64_t kDefaultRows = 6;

  int Pick(int n) {
    return static_cast<int>(random_() % static_cast<unsigned>(n));
  }
  static TaskKey Key(int i) { return {"worker", i}; }

  void GiveBack(const std::vector<int64_t>& places) {
    returned_.insert(places.begin(), places.end());
  }
  void GiveBackAhead(Worker& worker, size_t keep) {
    while (worker.queue.size() > keep) {
      GiveBack(worker.queue.back());
      worker.queue.pop_back();
    }
  }
  size_t NumBegun(const Worker& worker) { return worker.has_begun ? 1 : 0; }

  // The rows that the next lease must have; none if there are too few.
  std::vector<int64_t> NextRows(int64_t rows) {
    std::vector<int64_t> lease;
    for (const int64_t place : returned_) {
      if (static_cast<int64_t>(lease.size()) < rows) lease.push_back(place);
    }
    for (int64_t place = front_; static_cast<int64_t>(lease.size()) < rows;
         ++place) {
      if (place >= limit_) return {};
      lease.push_back(place);
    }
    return lease;
  }

  void Deal(int i) {
    const std::vector<int64_t> lease = NextRows(workers_[i].rows);
    ASSERT_EQ(leases_.TryDeal(Key(i)), !lease.empty());
    for (const int64_t place : lease) {
      returned_.erase(place);
      front_ = std::max(front_, place + 1);
    }
    if (!lease.empty()) workers_[i].queue.push_back(lease);
  }

  void BeginOrEnd(int i) {
    Worker& worker = workers_[i];
    if (worker.queue.empty()) return;
    if (!std::exchange(worker.has_begun, true)) return leases_.Begin(Key(i));
    const int how = Pick(3);
    if (how == 0) {
      ASSERT_EQ(PlacesOf(leases_.Finish(Key(i))), worker.queue.front());
    } else if (how == 1) {
      leases_.Skip(Key(i));
    } else {
      leases_.GiveBack(Key(i));
      GiveBack(worker.queue.front());
    }
    if (how != 2) {
      for (const int64_t place : worker.queue.front()) {
        ASSERT_TRUE(done_.insert(place).second) << "done twice";
      }
    }
    worker.queue.pop_front();
    worker.has_begun = false;
  }

  void Leave(int i, bool lapses) {
    Worker& worker = workers_[i];
    if (worker.has_begun) worker.lapsed = worker.queue.front();
    if (!lapses) worker.lapsed.clear();
    GiveBackAhead(worker, 0);
    worker.has_begun = false;
    worker.rows = kDefaultRows;
    lapses ? leases_.Lapse(Key(i), true) : leases_.Leave(Key(i), true);
  }

  void Reclaim(int i) {
    Worker& worker = workers_[i];
    if (worker.has_begun) return;
    bool is_free = !worker.lapsed.empty();
    for (const int64_t place : worker.lapsed) {
      is_free = is_free && returned_.count(place) != 0;
    }
    ASSERT_EQ(leases_.TryReclaim(Key(i)), is_free);
    if (!is_free) return;
    for (const int64_t place : worker.lapsed) returned_.erase(place);
    worker.queue.push_front(std::move(worker.lapsed));
    worker.lapsed.clear();
    worker.has_begun = true;
  }

  void Recall(bool ahead_only) {
    ahead_only ? leases_.RecallAhead() : leases_.Recall();
    for (Worker& worker : workers_) {
      GiveBackAhead(worker, ahead_only ? 1 : NumBegun(worker));
    }
  }

  void Wish(int i) {
    const int64_t rows = 1 + Pick(9);
    Worker& worker = workers_[i];
    if (rows != worker.rows) GiveBackAhead(worker, NumBegun(worker));
    worker.rows = rows;
    leases_.SetWish(Key(i), {rows, 1});
  }

  // Each place before the front is in exactly one hand.
  void CheckAll() {
    std::map<int64_t, int> hands;
    for (const int64_t place : done_) ++hands[place];
    int64_t leased = 0;
    for (int i = 0; i < kTasks; ++i) {
      const std::vector<RowLease> leases = leases_.LeasesOf(Key(i));
      ASSERT_EQ(leases.size(), workers_[i].queue.size());
      for (size_t k = 0; k < leases.size(); ++k) {
        ASSERT_EQ(PlacesOf(leases[k]), workers_[i].queue[k]);
        leased += NumRows(leases[k]);
        for (const int64_t place : workers_[i].queue[k]) ++hands[place];
      }
    }
    for (const int64_t place : returned_) ++hands[place];
    ASSERT_EQ(static_cast<int64_t>(hands.size()), front_);
    for (const auto& [place, count] : hands) ASSERT_EQ(count, 1) << place;
    const RowLedger ledger = leases_.Ledger();
    ASSERT_THAT(CheckLedger(ledger), IsOk());
    ASSERT_EQ(ledger.front(), front_);
    for (const RowRange& range : ledger.undone()) {
      for (int64_t k = 0; k < range.rows(); ++k) {
        ASSERT_EQ(done_.count(range.first() + k), 0u);
      }
    }
    const RowCounts counts = leases_.Counts();
    ASSERT_EQ(counts.done(), static_cast<int64_t>(done_.size()));
    ASSERT_EQ(counts.returned(), static_cast<int64_t>(returned_.size()));
    ASSERT_EQ(counts.leased(), leased);
  }

  std::mt19937 random_{static_cast<unsigned>(GetParam())};
  RowLeases leases_;
  std::vector<Worker> workers_ = std::vector<Worker>(kTasks);
  std::set<int64_t> done_;
  std::set<int64_t> returned_;
  int64_t front_ = 0;
  int64_t limit_ = 300;
};

TEST_P(RowLeasesRandomTest, EachPlaceIsInOneHand) {
  leases_.Start({}, limit_, kDefaultRows);
  for (int call = 0; call < 1000; ++call) {
    const int i = Pick(kTasks);
    const int what = Pick(30);
    if (what < 12) {
      if (workers_[i].queue.size() < 4) Deal(i);
    } else if (what < 22) {
      BeginOrEnd(i);
    } else if (what < 24) {
      Leave(i, /*lapses=*/what == 22);
    } else if (what < 26) {
      Reclaim(i);
    } else if (what == 26) {
      Recall(/*ahead_only=*/Pick(2) == 0);
    } else if (what == 27) {
      leases_.SetLimit(limit_ += Pick(20));
      for (Worker& worker : workers_) GiveBackAhead(worker, NumBegun(worker));
    } else {
      Wish(i);
    }
    CheckAll();
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(done_.size(), 100u);
}

INSTANTIATE_TEST_SUITE_P(Seeds, RowLeasesRandomTest, testing::Range(1, 9));

}  // namespace
}  // namespace muster
