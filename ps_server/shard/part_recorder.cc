#include "ps_server/shard/part_recorder.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/cluster/task_id.h"
#include "common/rpc/part_number.h"
#include "ps_server/caller/task_name.h"

namespace muster {
namespace {

// How many lanes of waits there are is known at the end only.
enum Lane {
  kRounds = 1,
  kUpdates,
  kShard,
  kSaves,
  kFirstWait = 1000,
};

}  // namespace

PartRecorder::PartRecorder(const Options& options)
    : options_(options),
      begun_(options.clock->Now()),
      timeline_(TaskName(MakeTaskId(kPsJob, options.ps_index))) {
  ++*options_.running;
  timeline_.NameLane(kRounds, "rounds");
  timeline_.NameLane(kUpdates, "updates of rounds");
  timeline_.NameLane(kShard, "shard");
  timeline_.NameLane(kSaves, "saves");
}

void PartRecorder::End() {
  if (std::exchange(is_running_, false)) --*options_.running;
}

uint64_t PartRecorder::NumberOf(const Turn& turn) const {
  return PartNumber(turn.sender->incarnation(), turn.step, options_.ps_index,
                    turn.part);
}

void PartRecorder::BeginTurn(const Turn& turn) {
  const absl::Time now = Now();
  if (now - begun_ > kLongest) End();
  if (!is_running_) return;
  turn_ = turn;
  turn_name_ = absl::StrCat(turn.what, " of ", TaskName(*turn.sender));
  turn_begun_ = noted_ = now;
  has_updated_ = false;
  AddWait(turn, turn_name_, now);
}

void PartRecorder::AddWait(const Turn& turn, const std::string& name,
                           absl::Time until) {
  // As it is shown.
  if (absl::ToUnixMicros(turn.asked) == absl::ToUnixMicros(until)) return;
  const size_t lane = waits_.LaneOf(turn.asked, until);
  const int number = kFirstWait + static_cast<int>(lane);
  if (lane == wait_lanes_) {
    timeline_.NameLane(number, absl::StrCat("waiting ", ++wait_lanes_));
  }
  timeline_.AddTransfer(number, name, turn.asked, until, turn.step, turn.bytes);
}

void PartRecorder::EndTurn() {
  if (!turn_.has_value()) return;
  AddNote("answer", /*part=*/0);
  timeline_.AddTransfer(kShard, turn_name_, turn_begun_, noted_, turn_->step,
                        turn_->bytes);
  for (const Update& update : updates_) {
    timeline_.Add({kUpdates, update.name, update_begun_, noted_, update.step,
                   /*bytes=*/0, update.part});
  }
  updates_.clear();
  turn_.reset();
}

void PartRecorder::AddNote(const char* what, uint64_t part) {
  if (!turn_.has_value()) return;
  const absl::Time now = Now();
  timeline_.Add({kShard, what, noted_, now, turn_->step, /*bytes=*/0, part});
  noted_ = now;
}

void PartRecorder::NoteUpdate() {
  if (!turn_.has_value()) return;
  AddNote("apply", NumberOf(*turn_));
  has_updated_ = true;
}

void PartRecorder::NoteTaken(bool is_late) {
  if (!turn_.has_value() || has_updated_) return;
  if (!is_late) kept_.insert(NumberOf(*turn_));
  AddNote(is_late ? "late: drop" : "keep", /*part=*/0);
}

void PartRecorder::BeginUpdate(int64_t number,
                               const std::vector<DuplicateMark>& applied) {
  if (!turn_.has_value()) return;
  update_begun_ = Now();
  if (round_begun_.has_value()) {
    timeline_.AddSpan(kRounds, "round", *round_begun_, update_begun_, number);
  }
  round_begun_ = update_begun_;
  for (const DuplicateMark& mark : applied) {
    for (const int32_t part : mark.parts()) {
      const uint64_t of = PartNumber(mark.sender().incarnation(), mark.step(),
                                     options_.ps_index, part);
      if (!kept_.contains(of)) continue;
      updates_.push_back(
          {of, absl::StrCat("by ", TaskName(mark.sender())), mark.step()});
    }
  }
  // The others of that round are in no update.
  kept_.clear();
}

void PartRecorder::BeginSave() { save_begun_ = Now(); }

void PartRecorder::EndSave() {
  if (!save_begun_.has_value()) return;
  if (is_running_) {
    timeline_.AddSpan(kSaves, "save", *save_begun_, Now(), /*step=*/0);
  }
  save_begun_.reset();
}

ProfilePart PartRecorder::Take() {
  EndSave();
  End();
  return timeline_.Take();
}

}  // namespace muster
