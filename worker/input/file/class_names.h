#ifndef WORKER_INPUT_FILE_CLASS_NAMES_H_
#define WORKER_INPUT_FILE_CLASS_NAMES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace muster {

// The classes of a column while it is read: what is named gets a number, and
// at the end each number its index among the names, sorted by bytes. If all
// names are integers from 0, they are the indices as they stand.
//   numbers.push_back(*names.Number("cat"));  // For each row.
//   const std::vector<int32_t> indices = names.Indices();
//   for (int32_t& number : numbers) number = indices[number];
class ClassNames {
 public:
  // Above any set of classes, and exact in float32; an identifier of rows or a
  // text that was taken for a class goes beyond it.
  static constexpr int32_t kMaxClasses = 1 << 20;

  // With `known`, sorted or not, only these names are taken: those of the
  // training half for the test half. Without `has_numbers` an integer is a name
  // as any other.
  explicit ClassNames(std::vector<std::string> known = {},
                      bool has_numbers = true);

  // The number of `name`, a new one if it is new. Errors: InvalidArgument (not
  // among the known ones, empty, more than kMaxClasses, a number from 0 beside
  // a name that is none).
  absl::StatusOr<int32_t> Number(absl::string_view name);

  // The number that `name` has already. Errors: InvalidArgument (none).
  absl::StatusOr<int32_t> Find(absl::string_view name) const;

  // The index of each number's class.
  std::vector<int32_t> Indices() const;

  // By index: the known ones as they were given, or the names that came,
  // sorted; none if they are integers that stand for themselves.
  std::vector<std::string> Names() const;

 private:
  bool AreIndices() const;

  const bool closed_;
  const bool has_numbers_;
  // The newest of either kind; empty: there is none.
  std::string an_index_;
  std::string a_name_;
  // By number.
  std::vector<std::string> names_;
  absl::flat_hash_map<std::string, int32_t> numbers_;
};

}  // namespace muster

#endif  // WORKER_INPUT_FILE_CLASS_NAMES_H_
