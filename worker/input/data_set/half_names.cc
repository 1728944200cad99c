#include "worker/input/data_set/half_names.h"

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace muster {
namespace {

// The place where the word of a half begins; npos: there is none.
size_t FindHalf(absl::string_view name, Split split) {
  size_t begin = 0;
  for (const absl::string_view word :
       absl::StrSplit(name, absl::ByAnyChar("-_."))) {
    if (absl::EqualsIgnoreCase(word, PartName(split))) return begin;
    begin += word.size() + 1;
  }
  return absl::string_view::npos;
}

}  // namespace

absl::string_view PartName(Split split) {
  return split == Split::kTrain ? "train" : "test";
}

bool NamesHalf(absl::string_view name, Split split) {
  return absl::StartsWith(name, PartName(split)) ||
         FindHalf(name, split) != absl::string_view::npos;
}

absl::StatusOr<std::vector<std::string>> OtherNamesOfHalf(
    const std::vector<std::string>& files, Split split, const PartNames& names,
    bool in_pairs) {
  std::vector<std::string> found;
  std::vector<std::string> both;
  for (const std::string& name : files) {
    const bool is_train = NamesHalf(name, Split::kTrain);
    const bool is_test = NamesHalf(name, Split::kTest);
    if (is_train != is_test) {
      if (is_train == (split == Split::kTrain)) found.push_back(name);
    } else if (absl::c_any_of(names.both, [&](const std::string& ending) {
                 return absl::EndsWith(name, ending);
               })) {
      both.push_back(name);
    }
  }
  if (found.empty() && both.size() == 1) return both;
  for (const std::string& name : found) {
    const auto set_of = [split](const std::string& file) {
      return absl::string_view(file).substr(0, FindHalf(file, split));
    };
    if (in_pairs || set_of(name) == set_of(found[0])) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("opening a data set: '", found[0], "' and '", name,
                     "' are of two sets: keep them in two folders, or let the "
                     "names of those "
                     "that are one set begin with ",
                     PartName(split)));
  }
  return found;
}

}  // namespace muster
