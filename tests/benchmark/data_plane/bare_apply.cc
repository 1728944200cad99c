#include "tests/benchmark/data_plane/bare_apply.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/cord.h"
#include "absl/strings/string_view.h"
#include "common/base/status_macros.h"
#include "common/codec/codec.h"
#include "ps_server/block/float_runs.h"
#include "tests/benchmark/data_plane/rule_blocks.h"

namespace muster {
namespace {

constexpr float kGradient = 1e-3f;

enum class Work { kApply, kMove };

class BareApply : public Workload {
 public:
  // REQUIRES: to move, no codec.
  BareApply(std::unique_ptr<RuleBlocks> blocks, const Codec* codec, Work work)
      : blocks_(std::move(blocks)),
        codec_(codec),
        work_(work),
        gradient_(blocks_->parameter().size(), kGradient) {
    if (codec_ == nullptr) return;
    const auto elements = static_cast<int64_t>(gradient_.size());
    encoded_.resize(static_cast<size_t>(EncodedBytes(codec_, elements)));
    codec_->Encode(gradient_.data(), elements, encoded_.data());
    encoded_cord_ =
        absl::MakeCordFromExternal(encoded_, [](absl::string_view) {});
  }

  absl::Status Step(int) override {
    if (work_ == Work::kMove) {
      blocks_->Move(gradient_);
    } else if (codec_ == nullptr) {
      blocks_->Apply(gradient_);
    } else {
      FloatRuns runs(encoded_cord_, codec_);
      blocks_->Apply(&runs);
    }
    return absl::OkStatus();
  }

  absl::Status Check() override { return blocks_->Check(); }

  // The gradient is read; parameters and slots are read and written.
  int64_t bytes_per_step() const override {
    return blocks_->state_bytes() +
           EncodedBytes(codec_, static_cast<int64_t>(gradient_.size()));
  }

 private:
  const std::unique_ptr<RuleBlocks> blocks_;
  const Codec* const codec_;
  const Work work_;
  const std::vector<float> gradient_;
  std::string encoded_;
  // Over encoded_.
  absl::Cord encoded_cord_;
};

absl::StatusOr<std::unique_ptr<RuleBlocks>> BlocksOf(
    const WorkloadOptions& options) {
  return RuleBlocks::Create(
      options.optimizer, options.bytes / static_cast<int64_t>(sizeof(float)));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Workload>> MakeBareApply(
    const WorkloadOptions& options) {
  ASSIGN_OR_RETURN(const Codec* const codec, FindCodec(options.codec));
  ASSIGN_OR_RETURN(std::unique_ptr<RuleBlocks> blocks, BlocksOf(options));
  return std::make_unique<BareApply>(std::move(blocks), codec, Work::kApply);
}

absl::StatusOr<std::unique_ptr<Workload>> MakeApplyBound(
    const WorkloadOptions& options) {
  ASSIGN_OR_RETURN(std::unique_ptr<RuleBlocks> blocks, BlocksOf(options));
  return std::make_unique<BareApply>(std::move(blocks), nullptr, Work::kMove);
}

}  // namespace muster
