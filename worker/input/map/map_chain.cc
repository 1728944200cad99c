#include "worker/input/map/map_chain.h"

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/process/memory_limit.h"

namespace muster {
namespace {

absl::StatusOr<std::unique_ptr<MapStage>> CreateStage(const MapStageSpec& spec,
                                                      const RowSpec& input) {
  const absl::StatusOr<MapStageType> type = MapStageRegistry::Find(spec.type);
  if (!type.ok()) {
    return absl::InvalidArgumentError(type.status().message());
  }
  ASSIGN_OR_RETURN(const Attributes attributes,
                   Attributes::Create(type->attributes, spec.attrs));
  ASSIGN_OR_RETURN(std::unique_ptr<MapStage> stage,
                   type->create(attributes, input));
  // A chain needs memory for two rows of any stage at once.
  RETURN_IF_ERROR(CheckMemory(
      absl::StrCat("a row of ", stage->output().ToString()),
      SaturatingProduct(2, stage->output().num_bytes()), OwnMemoryLimit()));
  return stage;
}

}  // namespace

absl::StatusOr<MapChain> MapChain::Create(absl::Span<const MapStageSpec> specs,
                                          const RowSpec& input) {
  RETURN_IF_ERROR(Annotate(CheckRowSpec(input), "map"));
  MapChain chain(input);
  for (size_t i = 0; i < specs.size(); ++i) {
    RETURN_IF_ERROR(chain.Append(
        specs[i], absl::StrCat("map stage ", i + 1, " of ", specs.size(), " ('",
                               specs[i].type, "')")));
  }
  return chain;
}

absl::Status MapChain::Append(const MapStageSpec& spec, std::string title) {
  absl::StatusOr<std::unique_ptr<MapStage>> stage = CreateStage(spec, output());
  if (!stage.ok()) return Annotate(stage.status(), title);
  if (!links_.empty()) {
    scratch_bytes_ =
        std::max(scratch_bytes_, static_cast<size_t>(output().num_bytes()));
  }
  links_.push_back({std::move(title), *std::move(stage)});
  return absl::OkStatus();
}

absl::Status MapChain::Apply(absl::Span<const char> src, absl::Span<char> dst,
                             const std::optional<RowRandom>& random,
                             Scratch* scratch) const {
  assert(static_cast<int64_t>(src.size()) == input_.num_bytes());
  assert(static_cast<int64_t>(dst.size()) == output().num_bytes());
  if (links_.empty()) std::memcpy(dst.data(), src.data(), src.size());
  for (size_t i = 0; i < links_.size(); ++i) {
    const MapStage& stage = *links_[i].stage;
    AlignedBuffer& buffer = i % 2 == 0 ? scratch->even_ : scratch->odd_;
    const absl::Span<char> result =
        i + 1 == links_.size()
            ? dst
            : absl::MakeSpan(buffer.data(), stage.output().num_bytes());
    std::optional<RowRandom> own;
    if (random.has_value()) own = random->ForStage(static_cast<int64_t>(i));
    const absl::Status status =
        stage.Apply(src, result, own.has_value() ? &*own : nullptr);
    if (!status.ok()) return Annotate(status, links_[i].title);
    src = result;
  }
  return absl::OkStatus();
}

}  // namespace muster
