#include "worker/session/trained_rows.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/readable_number.h"
#include "common/rows/row_ranges.h"

namespace muster {
namespace {

int64_t WantedRows(const JobState& job) {
  return RowsOfEpochs(job.stop().epochs(), job.rows().epoch_rows());
}

std::string Epochs(double epochs) {
  return absl::StrCat(ReadableNumber(epochs, 4),
                      epochs == 1 ? " epoch" : " epochs");
}

// The first epoch, counted from 0, of which all rows were dealt from these
// data, by this version.
int64_t FirstKnownEpoch(const JobState& job) {
  const int64_t rows = job.rows().epoch_rows();
  return (job.rows().known_from() + rows - 1) / rows;
}

// The wanted rows of the epochs that are known.
int64_t KnownRows(const JobState& job) {
  return WantedRows(job) - FirstKnownEpoch(job) * job.rows().epoch_rows();
}

// "each of 60000 examples was trained on 2 times".
std::string DescribeWanted(const JobState& job) {
  const int64_t rows = job.rows().epoch_rows();
  const int64_t times = KnownRows(job) / rows;
  const int64_t more = KnownRows(job) % rows;
  const std::string epochs =
      more == 0 ? "" : absl::StrCat(" (", Epochs(job.stop().epochs()), ")");
  if (times == 0) {
    return absl::StrCat(more, " of ", rows, " examples were trained on once",
                        epochs);
  }
  return absl::StrCat(
      "each of ", rows, " examples was trained on ",
      times == 1 ? "once" : absl::StrCat(times, " times"),
      more == 0 ? "" : absl::StrCat(", and ", more, " of them once more"),
      epochs);
}

}  // namespace

std::optional<int64_t> RowsLeft(const JobState& job) {
  if (job.stop().epochs() <= 0 || job.rows().epoch_rows() <= 0) {
    return std::nullopt;
  }
  return std::max<int64_t>(WantedRows(job) - job.rows().done(), 0);
}

std::string DescribeTrainedRows(const JobState& job, bool skips_bad_records) {
  const std::optional<int64_t> left = RowsLeft(job);
  if (!left.has_value()) return "";
  const RowCounts& rows = job.rows();
  std::string line;
  if (job.stop_reason() != "epochs" || rows.done() > WantedRows(job) ||
      KnownRows(job) <= 0 || *left >= rows.epoch_rows()) {
    line = absl::StrCat(job.examples(), " examples were trained on, ",
                        Epochs(static_cast<double>(job.examples()) /
                               static_cast<double>(rows.epoch_rows())),
                        " of ", rows.epoch_rows());
  } else {
    line = DescribeWanted(job);
    if (rows.known_from() > 0) {
      absl::StrAppend(&line, " from epoch ", FirstKnownEpoch(job),
                      " on (counted from 0; before it the data set had another "
                      "size, or an older version dealt its rows)");
    }
    if (*left > 0) {
      absl::StrAppend(&line, ", but for ", *left,
                      " of the last epoch, less than a step");
    }
  }
  if (rows.repeated() > 0) {
    absl::StrAppend(&line, "; at most ", rows.repeated(),
                    " of them once more, in steps of workers or ps tasks that "
                    "were lost");
  }
  if (rows.skipped() > 0) {
    absl::StrAppend(&line, "; ", rows.skipped(),
                    " not, in steps that were passed over");
  }
  if (skips_bad_records) {
    absl::StrAppend(&line, "; a good one in the place of each bad record");
  }
  return line;
}

}  // namespace muster
