#include "common/tls/certs_folder.h"

#include <dirent.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <set>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "common/base/read_file.h"
#include "common/base/status_macros.h"
#include "common/tls/certificate_chain.h"

namespace muster {
namespace {

// A folder that is swapped is gone when its files are read; one is swapped by
// hand, so that the next try finds the new one.
constexpr int kTries = 3;

// Where the link leads now, so that all files are of one folder.
std::string Resolve(const std::string& dir) {
  const std::unique_ptr<char, void (*)(void*)> path(
      realpath(dir.c_str(), nullptr), &free);
  return path == nullptr ? dir : std::string(path.get());
}

bool IsEverybodys(const std::string& path) {
  struct stat file;
  return stat(path.c_str(), &file) == 0 &&
         (file.st_mode & (S_IROTH | S_IWOTH)) != 0;
}

absl::Status AboutFile(const std::string& path, const absl::Status& status) {
  if (status.ok()) return status;
  return absl::UnauthenticatedError(absl::StrCat(path, ": ", status.message()));
}

absl::Status CheckIdentity(const std::string& path, const Certs& certs,
                           absl::string_view job, int32_t index) {
  if (certs.identity.job == job && certs.identity.index == index) {
    return absl::OkStatus();
  }
  return absl::UnauthenticatedError(
      absl::StrCat(path, ": wanted the certificate of ", StemOf(job, index),
                   ", found that of ", NameOf(certs.identity)));
}

absl::StatusOr<Certs> ReadOnce(const std::string& dir, absl::string_view job,
                               int32_t index, absl::Time now) {
  const std::string stem = absl::StrCat(dir, "/", StemOf(job, index));
  const std::string pem = stem + ".pem";
  const std::string key = stem + ".key";
  const std::string authority = dir + "/ca.pem";
  Certs certs;
  ASSIGN_OR_RETURN(certs.authority, ReadFile(authority));
  ASSIGN_OR_RETURN(certs.chain, ReadFile(pem));
  ASSIGN_OR_RETURN(certs.key, ReadFile(key));
  if (IsEverybodys(key)) certs.exposed_key = key;
  RETURN_IF_ERROR(ReadCertificate(certs.authority, authority).status());
  ASSIGN_OR_RETURN(certs.certificate, ReadCertificate(certs.chain, pem));
  RETURN_IF_ERROR(AboutFile(key, CheckKeyPair(certs.chain, certs.key)));
  for (const TlsSide side : {TlsSide::kServer, TlsSide::kClient}) {
    // Only ps tasks are dialled; others may hold a client's certificate alone.
    if (side == TlsSide::kServer && job != "ps") continue;
    RETURN_IF_ERROR(
        AboutFile(pem, CheckChain(certs.chain, certs.authority, side, now)));
  }
  const absl::StatusOr<Identity> identity = IdentityOf(certs.certificate);
  RETURN_IF_ERROR(AboutFile(pem, identity.status()));
  certs.identity = *identity;
  RETURN_IF_ERROR(CheckIdentity(pem, certs, job, index));
  return certs;
}

}  // namespace

absl::StatusOr<Certs> ReadCerts(absl::string_view dir, absl::string_view job,
                                int32_t index, absl::Time now) {
  const std::string given(dir);
  for (int i = 1;; ++i) {
    const std::string resolved = Resolve(given);
    absl::StatusOr<Certs> certs = ReadOnce(resolved, job, index, now);
    if (certs.ok() || i == kTries || Resolve(given) == resolved) return certs;
  }
}

absl::StatusOr<int32_t> OwnIndexIn(absl::string_view dir,
                                   absl::string_view job) {
  const std::string folder(dir);
  const std::unique_ptr<DIR, int (*)(DIR*)> open(opendir(folder.c_str()),
                                                 &closedir);
  if (open == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("--certs_dir=", dir, ": ", std::strerror(errno)));
  }
  std::set<int32_t> indices;
  while (const dirent* const entry = readdir(open.get())) {
    absl::string_view name = entry->d_name;
    int32_t index = 0;
    if (absl::ConsumePrefix(&name, absl::StrCat(job, "-")) &&
        absl::ConsumeSuffix(&name, ".pem") && absl::SimpleAtoi(name, &index)) {
      indices.insert(index);
    }
  }
  if (indices.size() == 1) return *indices.begin();
  return absl::InvalidArgumentError(absl::StrCat(
      "--task_index=any: --certs_dir=", dir, " has the certificates of ",
      indices.size(), " tasks of job ", job, " (", absl::StrJoin(indices, ", "),
      "); leave this task's alone in it, or name its --task_index"));
}

}  // namespace muster
