#include "common/tls/certificate_feed.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace muster {
namespace {

constexpr unsigned int kLookEverySeconds = 1;

absl::Status Failed(absl::string_view what) {
  return absl::ResourceExhaustedError(absl::StrCat(
      "certificates in memory: ", what, ": ", std::strerror(errno)));
}

std::string PathOf(const FileDescriptor& file) {
  return absl::StrCat("/proc/self/fd/", file.get());
}

}  // namespace

absl::StatusOr<std::unique_ptr<CertificateFeed>> CertificateFeed::Create(
    absl::string_view authority, absl::string_view chain,
    absl::string_view key) {
  auto feed = absl::WrapUnique(new CertificateFeed());
  RETURN_IF_ERROR(feed->Publish(authority, chain, key));
  const std::string identity = PathOf(feed->identity_);
  if (access(identity.c_str(), R_OK) != 0) {
    return absl::UnavailableError(absl::StrCat(
        identity, ": ", std::strerror(errno), "; TLS wants /proc"));
  }
  feed->provider_ =
      std::make_shared<grpc::experimental::FileWatcherCertificateProvider>(
          identity, identity, PathOf(feed->authority_), kLookEverySeconds);
  return feed;
}

absl::Status CertificateFeed::Publish(absl::string_view authority,
                                      absl::string_view chain,
                                      absl::string_view key) {
  ++version_;
  RETURN_IF_ERROR(Write(authority, &authority_));
  return Write(absl::StrCat(chain, "\n", key), &identity_);
}

absl::Status CertificateFeed::Write(absl::string_view text,
                                    FileDescriptor* at) {
  FileDescriptor file(memfd_create("muster-certificates", MFD_CLOEXEC));
  if (!file.valid()) return Failed("memfd_create");
  if (!WriteAll(file.get(), text)) return Failed("write");
  const timespec times[2] = {{version_, 0}, {version_, 0}};
  if (futimens(file.get(), times) != 0) return Failed("futimens");
  if (!at->valid()) {
    *at = std::move(file);
  } else if (dup3(file.get(), at->get(), O_CLOEXEC) < 0) {
    return Failed("dup3");
  }
  return absl::OkStatus();
}

}  // namespace muster
