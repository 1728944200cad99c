#ifndef WORKER_INPUT_DATA_SET_SAY_REMARKS_H_
#define WORKER_INPUT_DATA_SET_SAY_REMARKS_H_

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/base/reporter.h"

namespace muster {

// Says DataSet::Remarks of "training data" or "test data", a line each.
inline void SayRemarks(absl::string_view data,
                       const std::vector<std::string>& remarks,
                       const Reporter& reporter) {
  for (const std::string& remark : remarks) {
    reporter.Info(absl::StrCat(data, ": ", remark));
  }
}

}  // namespace muster

#endif  // WORKER_INPUT_DATA_SET_SAY_REMARKS_H_
