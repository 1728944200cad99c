#include "worker/input/stream/create_stream.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"
#include "worker/input/data_set/create_data_set.h"
#include "worker/input/data_set/data_set_registry.h"
#include "worker/input/data_set/row_mapper.h"
#include "worker/input/file/bad_rows.h"
#include "worker/input/stream/parts_stream.h"

namespace muster {
namespace {

std::vector<std::string> StreamTypes() {
  std::vector<std::string> types;
  for (const std::string& name : DataSetRegistry::Names()) {
    const auto type = DataSetRegistry::Find(name);
    if (type.ok() && type->open_in_order != nullptr) types.push_back(name);
  }
  return types;
}

// The first row, or the first good one, shows whether the model can read them.
absl::Status CheckFirstRow(BadRecordPolicy on_bad, const LabelSpec& labels,
                           ExampleStream* stream) {
  std::vector<float> values(stream->example_shape().num_elements());
  std::vector<float> targets(labels.num_targets);
  int32_t label = 0;
  ExampleMemory into;
  into.values = values.data();
  if (!targets.empty()) into.targets = targets.data();
  if (labels.kind == LabelKind::kClass) into.label = &label;
  RETURN_IF_ERROR(stream->Begin());
  StreamRecord record;
  absl::Status bad;
  for (int64_t row = 0; row < kMostBadInARow; ++row) {
    ASSIGN_OR_RETURN(const bool more, stream->Next(&record));
    if (!more) return bad.ok() ? absl::OkStatus() : AllBad(row, bad);
    bad = stream->Decode(record, /*epoch=*/0, into);
    if (on_bad != SKIP || !IsBadRecord(bad)) return bad;
  }
  return AllBad(kMostBadInARow, bad);
}

}  // namespace

absl::StatusOr<std::unique_ptr<ExampleStream>> CreateStream(
    const InputSpec& spec, const Shape& input_shape, uint64_t seed,
    const LabelSpec& labels, int64_t num_classes) {
  ASSIGN_OR_RETURN(
      const DataSetRequest request,
      MakeDataSetRequest(spec, input_shape, seed, Split::kTrain, labels));
  ASSIGN_OR_RETURN(const DataSetType type, DataSetRegistry::Find(spec.type()));
  if (type.open_in_order == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("input.stream: input.type \"", spec.type(),
                     "\" cannot be read as a stream; ",
                     absl::StrJoin(StreamTypes(), " and "), " can"));
  }
  std::unique_ptr<RowMapper> mapper;
  if (!spec.map().empty() || !spec.shape().empty()) {
    ASSIGN_OR_RETURN(mapper, RowMapper::Create(request.example_shape,
                                               spec.map(), input_shape, seed));
  }
  ASSIGN_OR_RETURN(
      std::unique_ptr<PartsStream> stream,
      PartsStream::Open(type, request, num_classes, std::move(mapper)));
  RETURN_IF_ERROR(CheckFirstRow(spec.on_bad_record(), labels, stream.get()));
  return stream;
}

}  // namespace muster
