#include "common/config/local_path.h"

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/base/escape.h"

namespace muster {
namespace {

bool HasScheme(absl::string_view path) {
  const size_t end = path.find("://");
  if (end == absl::string_view::npos || !absl::ascii_isalpha(path.front())) {
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

bool HasVariable(absl::string_view path) {
  return absl::c_any_of(absl::StrSplit(path, '/'), IsVariable) ||
         absl::StrContains(path, "${") || absl::StrContains(path, "$(");
}

}  // namespace

absl::Status CheckLocalPath(absl::string_view name, absl::string_view path) {
  if (path.empty()) return absl::OkStatus();
  absl::string_view why;
  if (HasScheme(path)) {
    why =
        " is no path of this machine, and no other storage is opened: mount it "
        "(NFS, s3fs, gcsfuse, ...) and give the path that it has there";
  } else if (path.front() == '~') {
    why =
        " would be a file or folder of just that name, as no shell has put in "
        "the home "
        "folder (in quotes and behind = it does not): write the path out, or "
        "./~ for one that is called so";
  } else if (HasVariable(path)) {
    why =
        " would be a file or folder of just that name, as no shell has put in "
        "the "
        "variable (in single quotes and in files it does not): write the path "
        "out";
  }
  if (why.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(name, "=", EscapeForLog(path), why));
}

}  // namespace muster
