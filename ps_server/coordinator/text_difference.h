#ifndef PS_SERVER_COORDINATOR_TEXT_DIFFERENCE_H_
#define PS_SERVER_COORDINATOR_TEXT_DIFFERENCE_H_

#include <string>

#include "absl/strings/string_view.h"
#include "proto/coordination_service.pb.h"

namespace muster {

// The first line in which two text protos differ, with the field that it is in:
// "optimizer.attr 'learning_rate': line 7 is 'f: 0.5', there it is 'f: 0.1'",
// where `known` is there. For any text, printed with care.
std::string FirstDifference(absl::string_view known, absl::string_view given);

// The same of two sections of one name and other digests, where `known` is the
// owner's: "classes: line 3 is 'dog' here, 'cat' at OWNER"; without the line's
// number where each has a single one. A text whose hash is not the section's
// digest was cut: lines behind its end are not known.
std::string SectionDifference(const DataSection& known,
                              const DataSection& given,
                              absl::string_view owner);

}  // namespace muster

#endif  // PS_SERVER_COORDINATOR_TEXT_DIFFERENCE_H_
