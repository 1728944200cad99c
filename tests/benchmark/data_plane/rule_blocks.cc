#include "tests/benchmark/data_plane/rule_blocks.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/codec/value_format.h"
#include "common/rpc/protocol.h"
#include "tests/benchmark/data_plane/move_values.h"

namespace muster {

absl::StatusOr<std::unique_ptr<RuleBlocks>> RuleBlocks::Create(
    const std::string& optimizer, int64_t elements) {
  OptimizerSpec spec;
  spec.set_name(optimizer);
  ASSIGN_OR_RETURN(std::unique_ptr<UpdateRule> rule, CreateUpdateRule(spec));
  return std::unique_ptr<RuleBlocks>(new RuleBlocks(std::move(rule), elements));
}

RuleBlocks::RuleBlocks(std::unique_ptr<UpdateRule> rule, int64_t elements)
    : rule_(std::move(rule)),
      elements_(elements),
      parameter_(static_cast<size_t>(elements) * sizeof(float)) {
  std::fill_n(parameter_.as<float>(), elements, kStart);
  for (const SlotDef& slot : rule_->slots()) {
    slots_.emplace_back(parameter_.size_bytes());
    std::fill_n(slots_.back().as<float>(), elements, slot.initial_value);
  }
  run_slots_.resize(slots_.size());
}

void RuleBlocks::ApplyRun(int64_t offset, const EncodedRun& run) {
  for (size_t i = 0; i < slots_.size(); ++i) {
    run_slots_[i] = slots_[i].as<float>() + offset;
  }
  rule_->ApplyEncoded({t_}, {run.values, parameter_.as<float>() + offset,
                             run_slots_, run.size, /*publish_to=*/nullptr});
}

void RuleBlocks::Apply(absl::Span<const float> gradient) {
  ++t_;
  for (int64_t offset = 0; offset < elements_; offset += kBlockElements) {
    const int64_t length = std::min(kBlockElements, elements_ - offset);
    ApplyRun(offset, {AsEncoded(gradient.data() + offset), length});
  }
}

void RuleBlocks::Apply(FloatRuns* gradient) {
  ++t_;
  for (int64_t offset = 0; offset < elements_;) {
    const int64_t left_in_block = kBlockElements - offset % kBlockElements;
    const EncodedRun run =
        gradient->NextEncoded(std::min(left_in_block, elements_ - offset));
    ApplyRun(offset, run);
    offset += run.size;
  }
}

void RuleBlocks::Move(absl::Span<const float> gradient) {
  for (int64_t offset = 0; offset < elements_; offset += kBlockElements) {
    for (size_t i = 0; i < slots_.size(); ++i) {
      run_slots_[i] = slots_[i].as<float>() + offset;
    }
    MoveValues(gradient.data() + offset, parameter_.as<float>() + offset,
               run_slots_, std::min(kBlockElements, elements_ - offset));
  }
}

absl::Span<const float> RuleBlocks::parameter() const {
  return {parameter_.as<float>(), static_cast<size_t>(elements_)};
}

int64_t RuleBlocks::state_bytes() const {
  return 2 *
         static_cast<int64_t>((1 + slots_.size()) * parameter_.size_bytes());
}

absl::Status RuleBlocks::Check() const {
  return CheckMoved(parameter(), kStart);
}

absl::Status CheckMoved(absl::Span<const float> values, float start) {
  for (size_t i = 0; i < values.size(); ++i) {
    if (std::isfinite(values[i]) && values[i] != start) continue;
    return absl::InternalError(
        absl::StrCat("element ", i, " of ", values.size(), " began as ", start,
                     " and is ", values[i], ": no update has reached it"));
  }
  return absl::OkStatus();
}

}  // namespace muster
