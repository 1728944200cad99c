#include "common/config/local_path.h"

#include <algorithm>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/base/escape.h"

namespace muster {
namespace {

// "s3://bucket/run" and "s3:/bucket/run", but not "c:/run" or "x/y:/z".
bool HasScheme(absl::string_view path) {
  const size_t end = path.find(":/");
  if (end == absl::string_view::npos || end < 2 ||
      !absl::ascii_isalpha(path.front())) {
    return false;
  }
  return absl::c_all_of(path.substr(0, end), [](unsigned char c) {
    return absl::ascii_isalnum(c) || c == '+' || c == '-' || c == '.';
  });
}

// "$HOME", but not "$5".
bool IsVariable(absl::string_view word) {
  return absl::ConsumePrefix(&word, "$") && !word.empty() &&
         !absl::ascii_isdigit(word.front()) &&
         absl::c_all_of(word, [](unsigned char c) {
           return absl::ascii_isalnum(c) || c == '_';
         });
}

// Whether `text`, behind a '$', is a variable's name: "SLURM_JOB_ID", not "b".
bool BeginsInCapitals(absl::string_view text) {
  const size_t end =
      std::min(text.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"),
               text.size());
  return end > 1 && !absl::ascii_isdigit(text.front()) &&
         !absl::ascii_islower(end < text.size() ? text[end] : '.');
}

bool HasVariable(absl::string_view path) {
  std::vector<absl::string_view> after_dollars = absl::StrSplit(path, '$');
  after_dollars.erase(after_dollars.begin());
  return absl::c_any_of(absl::StrSplit(path, '/'), IsVariable) ||
         absl::c_any_of(after_dollars, BeginsInCapitals) ||
         absl::StrContains(path, "${") || absl::StrContains(path, "$(") ||
         absl::StrContains(path, '`');
}

// A shell takes them away; in a file of flags they stay.
bool HasMarksAround(absl::string_view path) {
  const char first = path.front();
  const char last = path.back();
  return ((first == '"' || first == '\'') && path.size() > 1 &&
          last == first) ||
         absl::ascii_isspace(first) || absl::ascii_isspace(last);
}

}  // namespace

absl::Status CheckLocalPath(absl::string_view name, absl::string_view path) {
  if (path.empty()) return absl::OkStatus();
  absl::string_view why;
  if (absl::StartsWith(path, "file:/")) {
    why = " is an address: write the path alone, without file:";
  } else if (HasScheme(path)) {
    why =
        " is no path of this machine, and no other storage is opened: mount it "
        "(NFS, s3fs, gcsfuse, ...) and give the path that it has there";
  } else if (path.front() == '~') {
    why =
        " would be a file or folder of just that name, as no shell has put in "
        "the home folder (in quotes and behind = it does not): write the path "
        "out, or ./~ for one that is called so";
  } else if (HasVariable(path)) {
    why =
        " would be a file or folder of just that name, as no shell has put in "
        "the variable (in single quotes and in files it does not): write the "
        "path out";
  } else if (HasMarksAround(path)) {
    why =
        " would be a file or folder of just that name, with the quotes or "
        "blanks around it (a file of flags wants none): leave them out";
  }
  if (why.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(name, "=", EscapeForLog(path), why));
}

}  // namespace muster
