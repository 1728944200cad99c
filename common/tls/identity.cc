#include "common/tls/identity.h"

#include <cstddef>
#include <optional>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/cluster/task_id.h"

namespace muster {
namespace {

constexpr absl::string_view kScheme = "spiffe://";
constexpr size_t kMaxPrinted = 200;

bool IsRole(absl::string_view name) {
  return name == kViewerIdentity || name == kAdminIdentity;
}

bool IsJob(absl::string_view name) {
  return name == kPsJob || name == kWorkerJob || name == kChiefJob ||
         name == kEvaluatorJob;
}

bool IsCluster(absl::string_view name) {
  return !name.empty() && absl::c_all_of(name, [](char c) {
    return absl::ascii_islower(c) || absl::ascii_isdigit(c) || c == '.' ||
           c == '-' || c == '_';
  });
}

// No sign, no leading zero.
std::optional<int32_t> ParseIndex(absl::string_view text) {
  int32_t index = 0;
  if (!absl::SimpleAtoi(text, &index) || index < 0 ||
      absl::StrCat(index) != text) {
    return std::nullopt;
  }
  return index;
}

std::optional<Identity> TaskOf(absl::string_view cluster, absl::string_view job,
                               absl::string_view index) {
  const std::optional<int32_t> number = ParseIndex(index);
  if (!IsCluster(cluster) || !IsJob(job) || !number) return std::nullopt;
  return Identity{std::string(cluster), std::string(job), *number};
}

std::optional<Identity> RoleOf(absl::string_view cluster,
                               absl::string_view role) {
  if (!IsCluster(cluster) || !IsRole(role)) return std::nullopt;
  return Identity{std::string(cluster), std::string(role), -1};
}

std::optional<Identity> FromUri(absl::string_view uri) {
  if (!absl::ConsumePrefix(&uri, kScheme)) return std::nullopt;
  const std::vector<absl::string_view> parts = absl::StrSplit(uri, '/');
  if (parts.size() == 3 && parts[1] == "role") {
    return RoleOf(parts[0], parts[2]);
  }
  if (parts.size() != 5 || parts[1] != "job" || parts[3] != "task") {
    return std::nullopt;
  }
  return TaskOf(parts[0], parts[2], parts[4]);
}

std::optional<Identity> FromDnsName(absl::string_view name) {
  const size_t dot = name.find('.');
  if (dot == absl::string_view::npos) return std::nullopt;
  const absl::string_view who = name.substr(0, dot);
  const absl::string_view cluster = name.substr(dot + 1);
  if (IsRole(who)) return RoleOf(cluster, who);
  const std::vector<absl::string_view> parts = absl::StrSplit(who, '-');
  if (parts.size() != 2) return std::nullopt;
  return TaskOf(cluster, parts[0], parts[1]);
}

bool HasScheme(absl::string_view uri) { return absl::StartsWith(uri, kScheme); }

}  // namespace

absl::StatusOr<Identity> IdentityOf(const Certificate& certificate) {
  std::vector<Identity> found;
  // With one such URI the DNS names are addresses.
  const bool has_uri = absl::c_any_of(certificate.uris, HasScheme);
  for (const std::string& name :
       has_uri ? certificate.uris : certificate.dns_names) {
    const std::optional<Identity> one =
        has_uri ? FromUri(name) : FromDnsName(name);
    if (one.has_value()) found.push_back(*one);
  }
  if (found.size() == 1 && absl::c_count_if(certificate.uris, HasScheme) <= 1) {
    return found.front();
  }
  std::vector<std::string> names = certificate.uris;
  names.insert(names.end(), certificate.dns_names.begin(),
               certificate.dns_names.end());
  return absl::UnauthenticatedError(absl::StrCat(
      "does not say whose it is: wanted one URI "
      "spiffe://CLUSTER/job/JOB/task/INDEX (or /role/viewer, /role/admin), or "
      "one DNS name JOB-INDEX.CLUSTER, found '",
      absl::CHexEscape(absl::StrJoin(names, " ").substr(0, kMaxPrinted)), "'"));
}

std::string NameOf(const Identity& identity) {
  const std::string who =
      identity.is_task() ? TaskName(MakeTaskId(identity.job, identity.index))
                         : absl::StrCat("the ", identity.job);
  return absl::StrCat(who, " of cluster '", identity.cluster, "'");
}

std::string StemOf(absl::string_view job, int32_t index) {
  return index < 0 ? std::string(job) : absl::StrCat(job, "-", index);
}

}  // namespace muster
