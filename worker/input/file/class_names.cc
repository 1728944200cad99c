#include "worker/input/file/class_names.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/base/escape.h"
#include "common/base/nearest_name.h"

namespace muster {
namespace {

// Enough to tell which one it is.
constexpr size_t kShownBytes = 80;
constexpr size_t kShownNames = 100;

bool ParseIndex(absl::string_view name, int32_t* index) {
  return absl::SimpleAtoi(name, index) && *index >= 0 &&
         *index < ClassNames::kMaxClasses;
}

}  // namespace

ClassNames::ClassNames(std::vector<std::string> known, bool has_numbers)
    : closed_(!known.empty()),
      has_numbers_(has_numbers),
      names_(std::move(known)) {
  for (size_t i = 0; i < names_.size(); ++i) {
    numbers_.emplace(names_[i], static_cast<int32_t>(i));
  }
}

absl::StatusOr<int32_t> ClassNames::Find(absl::string_view name) const {
  const auto found = numbers_.find(name);
  if (found != numbers_.end()) return found->second;
  if (name.empty()) {
    return absl::InvalidArgumentError("wanted a class, found none");
  }
  std::vector<std::string> shown;
  for (size_t i = 0; i < std::min(names_.size(), kShownNames); ++i) {
    shown.push_back(EscapeForLog(names_[i], kShownBytes));
  }
  const size_t others = names_.size() - shown.size();
  return absl::InvalidArgumentError(absl::StrCat(
      UnknownNameMessage("class", EscapeForLog(name, kShownBytes), shown),
      others == 0 ? "" : absl::StrCat(" and ", others, " others")));
}

absl::StatusOr<int32_t> ClassNames::Number(absl::string_view name) {
  const auto found = numbers_.find(name);
  if (found != numbers_.end()) return found->second;
  if (closed_ || name.empty()) return Find(name);
  // One typing error among class numbers would make names of all of them.
  int32_t index;
  const bool is_index = has_numbers_ && ParseIndex(name, &index);
  const std::string& other = is_index ? a_name_ : an_index_;
  if (!other.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "wanted classes that are all numbers from 0, or all names, found '",
        EscapeForLog(name, kShownBytes), "' and '",
        EscapeForLog(other, kShownBytes),
        "'; mend the one, or give each class a name that is no number"));
  }
  (is_index ? an_index_ : a_name_) = std::string(name);
  if (names_.size() == kMaxClasses) {
    return absl::InvalidArgumentError(
        absl::StrCat("wanted at most ", kMaxClasses, " classes, found '",
                     EscapeForLog(name, kShownBytes), "' as another one"));
  }
  const int32_t number = static_cast<int32_t>(names_.size());
  names_.emplace_back(name);
  numbers_.emplace(names_.back(), number);
  return number;
}

bool ClassNames::AreIndices() const {
  return has_numbers_ && !closed_ && a_name_.empty();
}

std::vector<int32_t> ClassNames::Indices() const {
  std::vector<int32_t> indices(names_.size());
  if (AreIndices()) {
    for (size_t i = 0; i < names_.size(); ++i) {
      ParseIndex(names_[i], &indices[i]);
    }
    return indices;
  }
  std::vector<int32_t> order(names_.size());
  std::iota(order.begin(), order.end(), 0);
  if (closed_) return order;
  std::sort(order.begin(), order.end(),
            [this](int32_t a, int32_t b) { return names_[a] < names_[b]; });
  for (size_t i = 0; i < order.size(); ++i) {
    indices[order[i]] = static_cast<int32_t>(i);
  }
  return indices;
}

std::vector<std::string> ClassNames::Names() const {
  if (AreIndices()) return {};
  std::vector<std::string> names = names_;
  if (!closed_) std::sort(names.begin(), names.end());
  return names;
}

}  // namespace muster
