#include "tests/simulation/shard_cuts.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"

namespace muster {
namespace {

template <typename Parts>
std::string MarkName(absl::string_view job, int index, uint64_t incarnation,
                     int64_t step, const Parts& parts) {
  return absl::StrCat(job, " ", index, " ", incarnation, " ", step, " ",
                      absl::StrJoin(parts, ","));
}

std::set<std::string> MarksOf(const BeginSnapshotReply& cut) {
  std::set<std::string> marks;
  for (const DuplicateMark& mark : cut.marks()) {
    marks.insert(
        MarkName(mark.sender().task().job(), mark.sender().task().index(),
                 mark.sender().incarnation(), mark.step(), mark.parts()));
  }
  return marks;
}

std::set<std::string> MarksOf(const ShardCut& shard) {
  std::set<std::string> marks;
  for (const WorkerMark& mark : shard.marks()) {
    marks.insert(MarkName(mark.job(), mark.index(), mark.incarnation(),
                          mark.step(), mark.parts()));
  }
  return marks;
}

}  // namespace

void ShardCuts::Add(const BeginSnapshotReply& cut, int64_t global_step,
                    const TensorValues& values, std::map<int, HeldRows> rows) {
  cuts_.push_back(
      {cut.version(), global_step, values, MarksOf(cut), std::move(rows)});
}

const std::map<int, HeldRows>* ShardCuts::Find(
    const ShardCut& saved, const TensorValues& values,
    std::optional<int64_t> global_step) const {
  const std::set<std::string> marks = MarksOf(saved);
  const auto found =
      std::find_if(cuts_.begin(), cuts_.end(), [&](const Cut& cut) {
        return cut.version == saved.version() && SameBits(cut.values, values) &&
               cut.marks == marks &&
               global_step.value_or(cut.global_step) == cut.global_step;
      });
  return found == cuts_.end() ? nullptr : &found->rows;
}

}  // namespace muster
