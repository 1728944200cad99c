#ifndef PS_SERVER_COORDINATOR_TEXT_DIFFERENCE_H_
#define PS_SERVER_COORDINATOR_TEXT_DIFFERENCE_H_

#include <string>

#include "absl/strings/string_view.h"

namespace muster {

// The first line in which two text protos differ, with the field that it is in:
// "optimizer.attr 'learning_rate': line 7 is 'f: 0.5', there it is 'f: 0.1'",
// where `known` is there. For any text, printed with care.
std::string FirstDifference(absl::string_view known, absl::string_view given);

}  // namespace muster

#endif  // PS_SERVER_COORDINATOR_TEXT_DIFFERENCE_H_
