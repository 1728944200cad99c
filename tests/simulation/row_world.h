#ifndef TESTS_SIMULATION_ROW_WORLD_H_
#define TESTS_SIMULATION_ROW_WORLD_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/rpc/parameter_link.h"
#include "proto/parameter_service.pb.h"
#include "ps_server/shard/parameter_shard.h"
#include "tests/simulation/random.h"
#include "tests/simulation/row_model.h"

namespace muster {

// A fault that is planted where messages go in and come out, for the oracle to
// find.
enum class RowBug {
  kNone,
  kPullCreates,           // whoever pulls a row makes it
  kMeanOverWhoTouched,    // a worker without the row is not counted
  kRowTwiceInAStep,       // the gradient of a row is applied once more
  kEvictedRowIsNotSaved,  // a row that goes during a snapshot is missing there
  kCountOfTheTable,       // all rows are saved with the same count of updates
  kRowIsLostOnItsMove,    // a row that another ps task has now is not loaded
};

// The rows of one table under all that can happen to them: workers that push to
// the ps tasks' shards, in async or in rounds, parts that come twice, late or
// never, workers that are started anew, snapshots and evictions in between, and
// ps tasks that die and come back as another number of them. Everything is
// compared with a RowModel of each ps task, to the bit. The same seed is the
// same history.
class RowWorld {
 public:
  RowWorld(uint64_t seed, RowBug bug);

  // Lets so many things happen. Returns what was found to be wrong; "" for
  // nothing.
  std::string Run(int events);

  // How often the dangerous things have happened.
  struct Seen {
    int64_t saves = 0;
    int64_t crashes = 0;
    int64_t repeats = 0;
    int64_t late = 0;
    int64_t evictions = 0;
    // Of them while a snapshot was read.
    int64_t evictions_in_snapshots = 0;
  };
  const Seen& seen() const { return seen_; }

 private:
  struct Worker {
    Sender sender;
    int64_t step = 0;
  };
  // A part on its way.
  struct Message {
    int ps = 0;
    int worker = 0;
    int64_t epoch = 0;
    Frame<PushPart> part;
    std::vector<int64_t> ids;
    std::vector<float> gradients;
    bool was_applied = false;
  };
  // A gradient that a shard keeps for a round.
  struct Kept {
    int ps = 0;
    int worker = 0;
    std::vector<int64_t> ids;
    std::vector<float> gradients;
  };

  void Check(bool holds, const std::string& what);
  // New shards, with the rows that were saved last.
  void StartPs();
  void Hello(const Sender& sender);
  void LoadSaved();
  Fence FenceOf(int64_t epoch) const;
  int PsOf(int64_t id) const;
  std::vector<int64_t> SomeIds();
  StepToken Token() const;

  void Step(int worker);
  // Pulls the ids of one ps task, and compares them; returns the version.
  int64_t Pull(int ps, const Sender& sender, const std::vector<int64_t>& ids);
  void Send(int worker, int ps, std::vector<int64_t> ids, int64_t version);
  bool IsBusy(int worker) const;
  void Deliver(size_t index);
  void Apply(const Message& message);
  void Update(int ps, const std::vector<int64_t>& ids,
              const std::vector<float>& gradients, int64_t version);
  void CloseRound();
  void ApplyMean(int ps);
  void Restart(int worker);
  void BeginSnapshot();
  void ReadSnapshot();
  void FinishSnapshot();
  void Crash();

  const RowBug bug_;
  Random random_;
  TableDef table_;
  bool sync_ = false;
  std::vector<int64_t> ids_;
  std::vector<Worker> workers_;
  std::vector<std::unique_ptr<ParameterShard>> shards_;
  // Of what the shards should have, and their versions, by ps task.
  std::vector<RowModel> models_;
  std::vector<int64_t> versions_;
  int64_t epoch_ = 0;
  std::vector<Message> messages_;

  int64_t round_ = 1;
  std::vector<int> chosen_;
  std::vector<Kept> kept_;       // of round_
  std::vector<Kept> mean_;       // of round_ - 1
  std::vector<bool> has_token_;  // by ps task: it was told of round_

  // The snapshot that is being read.
  std::vector<uint64_t> snapshots_;
  std::vector<RowModel> cut_;
  int reading_ps_ = 0;
  RowCursor cursor_;
  std::vector<SavedRow> read_;
  std::vector<SavedRow> saved_;

  Seen seen_;
  std::string wrong_;
};

}  // namespace muster

#endif  // TESTS_SIMULATION_ROW_WORLD_H_
