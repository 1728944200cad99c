#include "worker/input/data_set/numbered_parts.h"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <map>
#include <set>
#include <system_error>
#include <tuple>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "common/base/escape.h"
#include "common/base/status_macros.h"

namespace muster {
namespace {

// As many files are told by name.
constexpr int64_t kMostTold = 10;

// A larger number is no count of files.
constexpr int64_t kMostParts = std::numeric_limits<int32_t>::max();

// What the parts of one set have in common.
using SetKey = std::tuple<std::string, std::string, std::string>;
// The parts of one set, by index.
using Parts = std::map<int64_t, std::string>;

// The number of digits at the end of `text`, or at its beginning.
size_t DigitsAtEnd(absl::string_view text) {
  size_t digits = 0;
  while (digits < text.size() &&
         absl::ascii_isdigit(text[text.size() - digits - 1])) {
    ++digits;
  }
  return digits;
}

size_t DigitsAtBegin(absl::string_view text) {
  const auto* end =
      std::find_if_not(text.begin(), text.end(), absl::ascii_isdigit);
  return end - text.begin();
}

// The first names, and how many more there are of `all`.
std::string Told(absl::Span<const std::string> names, int64_t all) {
  std::vector<std::string> shown;
  for (const std::string& name : names) {
    if (static_cast<int64_t>(shown.size()) == kMostTold) break;
    shown.push_back(absl::StrCat("'", EscapeForLog(name), "'"));
  }
  const int64_t more = all - static_cast<int64_t>(shown.size());
  return absl::StrCat(absl::StrJoin(shown, ", "),
                      more > 0 ? absl::StrCat(" and ", more, " more") : "");
}

std::string PathOf(const NumberedPart& like, int64_t index) {
  std::string text = absl::StrCat(index);
  if (text.size() < like.index_text.size()) {
    text.insert(0, like.index_text.size() - text.size(), '0');
  }
  return absl::StrCat(like.before, text, like.of, like.count_text, like.after);
}

// The parts from `first` on that are not there.
std::string DescribeMissing(const NumberedPart& like, int64_t first,
                            const Parts& parts) {
  const int64_t all = like.count - static_cast<int64_t>(parts.size());
  const auto told = static_cast<size_t>(std::min(all, kMostTold));
  std::vector<std::string> missing;
  for (int64_t i = first; missing.size() < told; ++i) {
    if (parts.count(i) == 0) missing.push_back(PathOf(like, i));
  }
  return Told(missing, all);
}

absl::Status Refused(absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("opening a data set: ", what));
}

bool IsEmpty(const std::string& path) {
  std::error_code error;
  const auto size = std::filesystem::file_size(path, error);
  return !error && size == 0;
}

// Leaves "FILE.gz" out where "FILE" is, too.
void DropCompressedTwins(ChosenParts* parts) {
  const std::set<std::string> all(parts->paths.begin(), parts->paths.end());
  std::vector<std::string> twins;
  const auto has_twin = [&](const std::string& path) {
    absl::string_view plain = path;
    if (!absl::ConsumeSuffix(&plain, ".gz")) return false;
    if (all.count(std::string(plain)) == 0) return false;
    twins.push_back(path);
    return true;
  };
  parts->paths.erase(
      std::remove_if(parts->paths.begin(), parts->paths.end(), has_twin),
      parts->paths.end());
  if (twins.empty()) return;
  parts->remarks.push_back(
      absl::StrCat("passed over, because the same is there without .gz: ",
                   Told(twins, static_cast<int64_t>(twins.size()))));
}

// Leaves empty files out, or refuses them.
absl::Status DropEmpty(PartsPolicy policy, ChosenParts* parts) {
  std::vector<std::string> empty;
  std::vector<std::string> filled;
  for (std::string& path : parts->paths) {
    (IsEmpty(path) ? empty : filled).push_back(std::move(path));
  }
  const size_t all = empty.size() + filled.size();
  parts->paths = std::move(filled);
  if (empty.empty()) return absl::OkStatus();
  const std::string told = absl::StrCat(
      empty.size() == 1 ? "an empty file"
                        : absl::StrCat(empty.size(), " empty files"),
      " of ", all, ": ", Told(empty, static_cast<int64_t>(empty.size())));
  if (parts->paths.empty()) {
    return Refused(absl::StrCat("wanted rows, found ", told));
  }
  if (policy == WHOLE) {
    return Refused(absl::StrCat("wanted rows in each file, found ", told,
                                "; copy them again, or --set=input.parts=ANY "
                                "goes without them"));
  }
  parts->remarks.push_back(
      absl::StrCat("input.parts is ANY: passed over ", told));
  return absl::OkStatus();
}

// The numbered parts of a half.
class PartSets {
 public:
  // Errors: InvalidArgument (twice, of another count).
  absl::Status Add(const std::string& path);
  // Errors: InvalidArgument (beyond the count, missing).
  absl::Status Check(PartsPolicy policy,
                     std::vector<std::string>* remarks) const;

 private:
  static absl::Status CheckSet(const Parts& parts, PartsPolicy policy,
                               std::vector<std::string>* remarks);

  std::map<SetKey, Parts> sets_;
  // Of the first part; its count is that of all.
  std::string first_path_;
  int64_t count_ = 0;
};

absl::Status PartSets::Add(const std::string& path) {
  const std::optional<NumberedPart> part = FindPartNumber(path);
  if (!part.has_value()) return absl::OkStatus();
  if (first_path_.empty()) {
    first_path_ = path;
    count_ = part->count;
  }
  if (part->count != count_) {
    return Refused(absl::StrCat("'", EscapeForLog(first_path_), "' is one of ",
                                count_, " parts, '", EscapeForLog(path),
                                "' one of ", part->count,
                                "; a half is one set: remove the other"));
  }
  const auto [known, is_new] =
      sets_[{part->before, part->of, part->after}].emplace(part->index, path);
  if (is_new) return absl::OkStatus();
  return Refused(absl::StrCat("'", EscapeForLog(known->second), "' and '",
                              EscapeForLog(path),
                              "' are the same part: remove one"));
}

absl::Status PartSets::Check(PartsPolicy policy,
                             std::vector<std::string>* remarks) const {
  for (const auto& [key, parts] : sets_) {
    RETURN_IF_ERROR(CheckSet(parts, policy, remarks));
  }
  return absl::OkStatus();
}

absl::Status PartSets::CheckSet(const Parts& parts, PartsPolicy policy,
                                std::vector<std::string>* remarks) {
  const NumberedPart like = *FindPartNumber(parts.begin()->second);
  const int64_t last = parts.rbegin()->first;
  // Some count from 1.
  const int64_t first = last == like.count && parts.begin()->first > 0 ? 1 : 0;
  if (last - first >= like.count) {
    return Refused(absl::StrCat("'", EscapeForLog(parts.rbegin()->second),
                                "': wanted a part from ", first, " to ",
                                first + like.count - 1, ", of ", like.count));
  }
  const int64_t num_missing = like.count - static_cast<int64_t>(parts.size());
  const std::string missing = DescribeMissing(like, first, parts);
  if (policy == ANY) {
    remarks->push_back(absl::StrCat(
        "input.parts is ANY: ", parts.size(), " of ", like.count, " parts",
        num_missing == 0 ? ""
                         : absl::StrCat("; not there, or empty: ", missing)));
    return absl::OkStatus();
  }
  if (num_missing == 0) return absl::OkStatus();
  return Refused(absl::StrCat(
      "wanted all parts that '", EscapeForLog(parts.begin()->second),
      "' is one of; ", num_missing, " of ", like.count, " are missing: ",
      missing, "; copy them, or --set=input.parts=ANY goes without them"));
}

}  // namespace

std::optional<NumberedPart> FindPartNumber(absl::string_view path) {
  const size_t slash = path.rfind('/');
  const size_t begin = slash == absl::string_view::npos ? 0 : slash + 1;
  absl::ConsumeSuffix(&path, ".gz");
  for (const absl::string_view of : {"-of-", "_of_"}) {
    const size_t at = path.rfind(of);
    if (at == absl::string_view::npos || at < begin) continue;
    const absl::string_view index = path.substr(begin, at - begin);
    const absl::string_view count = path.substr(at + of.size());
    NumberedPart part;
    part.of = std::string(of);
    part.index_text =
        std::string(index.substr(index.size() - DigitsAtEnd(index)));
    part.count_text = std::string(count.substr(0, DigitsAtBegin(count)));
    part.before = std::string(path.substr(0, at - part.index_text.size()));
    part.after = std::string(count.substr(part.count_text.size()));
    // "1-of-3rd" is no number of a part.
    const bool ends = part.after.empty() || !absl::ascii_isalpha(part.after[0]);
    if (ends && absl::SimpleAtoi(part.index_text, &part.index) &&
        absl::SimpleAtoi(part.count_text, &part.count) &&
        part.count <= kMostParts) {
      return part;
    }
  }
  return std::nullopt;
}

absl::StatusOr<ChosenParts> ChooseParts(std::vector<std::string> found,
                                        PartsPolicy policy) {
  ChosenParts parts;
  parts.paths = std::move(found);
  DropCompressedTwins(&parts);
  RETURN_IF_ERROR(DropEmpty(policy, &parts));
  PartSets sets;
  for (const std::string& path : parts.paths) RETURN_IF_ERROR(sets.Add(path));
  RETURN_IF_ERROR(sets.Check(policy, &parts.remarks));
  return parts;
}

}  // namespace muster
