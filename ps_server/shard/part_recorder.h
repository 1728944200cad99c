#ifndef PS_SERVER_SHARD_PART_RECORDER_H_
#define PS_SERVER_SHARD_PART_RECORDER_H_

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/summary/lane_packer.h"
#include "common/summary/profile_timeline.h"
#include "proto/parameter_service.pb.h"
#include "proto/profile.pb.h"

namespace muster {

// A ps task's part of a job's profile: how long each request for one model
// waited for its turn and what was done in it, updates, rounds and saves. The
// one who serves requests tells it of their turns, ShardModel what happens in
// them. It ends by itself after kLongest. Not thread-safe.
class PartRecorder {
 public:
  static constexpr absl::Duration kLongest = absl::Minutes(1);

  struct Options {
    int ps_index = 0;
    // Both outlive it.
    const Clock* clock = nullptr;
    // Counts the recorders that have not ended.
    std::atomic<int>* running = nullptr;
  };

  // A request in its turn.
  struct Turn {
    // "push"; null: a kind that is not recorded.
    const char* what = nullptr;
    // Outlives the turn.
    const Sender* sender = nullptr;
    int64_t step = 0;
    int32_t part = 0;
    int64_t bytes = 0;
    // When it came.
    absl::Time asked;
  };

  explicit PartRecorder(const Options& options);
  ~PartRecorder() { End(); }

  PartRecorder(const PartRecorder&) = delete;
  PartRecorder& operator=(const PartRecorder&) = delete;

  // Around each turn.
  void BeginTurn(const Turn& turn);
  void EndTurn();

  // ---- Of ShardModel, in a turn; of no effect outside ----------------------
  // The time since the last note, or the turn's begin, went into `what`.
  void Note(const char* what) { AddNote(what, /*part=*/0); }
  // The same of the update by the turn's own part.
  void NoteUpdate();
  // The turn's part was taken, and applied by now, kept for its round, or too
  // late.
  void NoteTaken(bool is_late);
  // A round's update begins: its number, and the newest step of each worker
  // that is in the values then.
  void BeginUpdate(int64_t number, const std::vector<DuplicateMark>& applied);
  void BeginSave();
  void EndSave();

  // What was recorded, but for its clock. Once, last.
  ProfilePart Take();

 private:
  struct Update {
    uint64_t part = 0;
    std::string name;
    int64_t step = 0;
  };

  // Ends it, if that was not done.
  void End();
  void AddNote(const char* what, uint64_t part);
  void AddWait(const Turn& turn, const std::string& name, absl::Time until);
  uint64_t NumberOf(const Turn& turn) const;
  absl::Time Now() const { return options_.clock->Now(); }

  const Options options_;
  const absl::Time begun_;
  bool is_running_ = true;
  ProfileTimeline timeline_;
  LanePacker waits_;
  size_t wait_lanes_ = 0;

  std::optional<Turn> turn_;
  std::string turn_name_;
  absl::Time turn_begun_;
  absl::Time noted_;
  bool has_updated_ = false;

  // Kept for their round, and those whose update began in this turn.
  absl::flat_hash_set<uint64_t> kept_;
  std::vector<Update> updates_;
  absl::Time update_begun_;
  // That of the last update.
  std::optional<absl::Time> round_begun_;
  std::optional<absl::Time> save_begun_;
};

// A turn for as long as it lives. Null: nobody records.
class RecordedTurn {
 public:
  RecordedTurn(PartRecorder* recorder, const PartRecorder::Turn& turn)
      : recorder_(turn.what == nullptr ? nullptr : recorder) {
    if (recorder_ != nullptr) recorder_->BeginTurn(turn);
  }
  ~RecordedTurn() {
    if (recorder_ != nullptr) recorder_->EndTurn();
  }
  RecordedTurn(const RecordedTurn&) = delete;
  RecordedTurn& operator=(const RecordedTurn&) = delete;

 private:
  PartRecorder* const recorder_;
};

}  // namespace muster

#endif  // PS_SERVER_SHARD_PART_RECORDER_H_
