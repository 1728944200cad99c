#include "ps_server/shard/push_numbers.h"

#include "absl/strings/str_cat.h"
#include "common/optimizer/learning_rate_factor.h"
#include "ps_server/caller/count_range.h"
#include "ps_server/shard/duplicate_marks.h"

namespace muster {

absl::Status CheckPushNumbers(absl::string_view what, const PushPart& header,
                              int64_t version) {
  if (header.step() < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, ": steps are counted from 1"));
  }
  if (header.parts() < 1 || header.parts() > DuplicateMarks::kMaxParts ||
      header.part() < 0 || header.part() >= header.parts()) {
    return absl::InvalidArgumentError(absl::StrCat(
        what, ": part ", header.part(), " of ", header.parts(),
        "; wanted 0 <= part < parts <= ", DuplicateMarks::kMaxParts));
  }
  if (header.pulled_version() < 0 || header.pulled_version() > version) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, ": pulled version ", header.pulled_version(),
                     ", the shard is at version ", version));
  }
  if (!IsCount(header.counts().steps()) ||
      !IsCount(header.counts().examples())) {
    return absl::InvalidArgumentError(absl::StrCat(
        what, ": ", header.counts().steps(), " steps, ",
        header.counts().examples(), " examples; wanted 0 to ", kMaxCount));
  }
  if (!(header.learning_rate_factor() >= 0 &&
        header.learning_rate_factor() <= kMaxLearningRateFactor)) {
    return absl::InvalidArgumentError(absl::StrCat(
        what, ": the factor of the learning rate is ",
        header.learning_rate_factor(), "; wanted more than 0, and at most ",
        kMaxLearningRateFactor));
  }
  if (header.has_learning_rate()) {
    return absl::UnimplementedError(absl::StrCat(
        what, ": learning_rate ", header.learning_rate(),
        " for this update; this ps has the optimizer's schedule only"));
  }
  return absl::OkStatus();
}

}  // namespace muster
