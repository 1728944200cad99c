#include "tests/testing/certificates.h"

#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"

namespace muster {
namespace {

constexpr char kDays[] = "1";

// Runs openssl and waits for its end; what it says is dropped.
absl::Status RunOpenssl(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "openssl");
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  for (const int fd : {STDOUT_FILENO, STDERR_FILENO}) {
    posix_spawn_file_actions_addopen(&actions, fd, "/dev/null", O_WRONLY, 0);
  }
  pid_t pid = -1;
  const int error =
      posix_spawnp(&pid, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return absl::ErrnoToStatus(error, "starting openssl");
  int status = 0;
  if (waitpid(pid, &status, 0) == pid && status == 0) return absl::OkStatus();
  return absl::InternalError(
      absl::StrCat(absl::StrJoin(arguments, " "), ": it failed"));
}

// A new key, and with `more` what is made of it.
std::vector<std::string> NewKey(const std::string& key, const std::string& name,
                                std::vector<std::string> more) {
  std::vector<std::string> all = {
      "req",    "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
      "-nodes", "-keyout", key,  "-subj",    absl::StrCat("/CN=", name)};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Certificates>> Certificates::Make() {
  const char* const parent = getenv("TMPDIR");
  std::string folder = absl::StrCat(parent == nullptr ? "/tmp" : parent,
                                    "/muster_certificates_XXXXXX");
  if (mkdtemp(folder.data()) == nullptr) {
    return absl::ErrnoToStatus(errno, absl::StrCat("making ", folder));
  }
  auto made = std::unique_ptr<Certificates>(new Certificates(folder));
  RETURN_IF_ERROR(made->MakeAuthority());
  RETURN_IF_ERROR(made->MakeTask("ps"));
  RETURN_IF_ERROR(made->MakeTask("worker"));
  return made;
}

absl::Status Certificates::MakeAuthority() const {
  return RunOpenssl(NewKey(
      absl::StrCat(folder_, "/ca.key"), "authority",
      {"-x509", "-days", kDays, "-out", absl::StrCat(folder_, "/ca.pem")}));
}

absl::Status Certificates::MakeTask(const std::string& job) const {
  const std::string base = absl::StrCat(folder_, "/", job);
  RETURN_IF_ERROR(
      RunOpenssl(NewKey(base + ".key", job,
                        {"-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost",
                         "-out", base + ".csr"})));
  return RunOpenssl({"x509", "-req", "-in", base + ".csr", "-CA",
                     absl::StrCat(folder_, "/ca.pem"), "-CAkey",
                     absl::StrCat(folder_, "/ca.key"), "-CAcreateserial",
                     "-days", kDays, "-copy_extensions", "copy", "-out",
                     base + ".pem"});
}

Certificates::~Certificates() {
  for (const char* name :
       {"ca.key", "ca.pem", "ca.srl", "ps.key", "ps.csr", "ps.pem",
        "worker.key", "worker.csr", "worker.pem"}) {
    unlink(absl::StrCat(folder_, "/", name).c_str());
  }
  rmdir(folder_.c_str());
}

TlsFiles TlsFilesOf(const std::string& folder, const std::string& job) {
  return {absl::StrCat(folder, "/ca.pem"),
          absl::StrCat(folder, "/", job, ".pem"),
          absl::StrCat(folder, "/", job, ".key")};
}

}  // namespace muster
