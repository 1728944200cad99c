#include "worker/input/bad_records.h"

#include "absl/strings/str_cat.h"

namespace muster {

void BadRecords::Add(const absl::Status& error) {
  std::string line;
  {
    const absl::MutexLock lock(&mu_);
    ++count_;
    if (told_.size() == kMostLines) return;
    if (!told_.emplace(error.message()).second) return;
    line = absl::StrCat("skipped a bad record: ", error.message());
    if (told_.size() == kMostLines) {
      absl::StrAppend(&line, "; others are counted, and not told");
    }
  }
  reporter_.Warning(line);
}

void BadRecords::SayLeftOut(int64_t count_before, int64_t good_rows) const {
  const int64_t bad = count() - count_before;
  if (bad == 0) return;
  reporter_.Warning(absl::StrCat("evaluation: ", bad, " of ", bad + good_rows,
                                 " rows are bad, and are left out"));
}

}  // namespace muster
