#ifndef TESTS_TESTING_CERTIFICATES_H_
#define TESTS_TESTING_CERTIFICATES_H_

#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/rpc/credentials.h"

namespace muster {

// An authority and the certificates of a ps and of a worker, for 127.0.0.1 and
// localhost and a day, made by the `openssl` command in a temporary folder that
// goes with this.
class Certificates {
 public:
  // Errors: those of the folder and of starting openssl; Internal if it fails.
  static absl::StatusOr<std::unique_ptr<Certificates>> Make();
  ~Certificates();

  Certificates(const Certificates&) = delete;
  Certificates& operator=(const Certificates&) = delete;

  const std::string& folder() const { return folder_; }

 private:
  explicit Certificates(std::string folder) : folder_(std::move(folder)) {}

  absl::Status MakeAuthority() const;
  absl::Status MakeTask(const std::string& job) const;

  const std::string folder_;
};

// Those of "ps" or "worker", in the folder of a Certificates.
TlsFiles TlsFilesOf(const std::string& folder, const std::string& job);

}  // namespace muster

#endif  // TESTS_TESTING_CERTIFICATES_H_
