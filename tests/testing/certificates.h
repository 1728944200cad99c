#ifndef TESTS_TESTING_CERTIFICATES_H_
#define TESTS_TESTING_CERTIFICATES_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "openssl/evp.h"
#include "openssl/x509.h"

namespace muster {

// A folder as `muster certs` makes it, temporary, which goes with this: an
// authority, and the keys of a few tasks, each valid for a day.
//
//   ASSERT_THAT(Certificates::Make(), IsOk());
//   TaskKeys::Create({made->folder(), "worker", 0, ...});
class Certificates {
 public:
  struct Leaf {
    // Both may be empty.
    std::vector<std::string> uris;
    std::vector<std::string> dns_names;
    absl::Time not_before = absl::Now() - absl::Minutes(5);
    absl::Time not_after = absl::Now() + absl::Hours(24);
  };

  // With ps-0, ps-1, worker-0 to worker-2, chief-0, evaluator-0, viewer and
  // admin. Errors: those of files; Internal of OpenSSL.
  static absl::StatusOr<std::unique_ptr<Certificates>> Make(
      const std::string& cluster = "muster");
  ~Certificates();

  Certificates(const Certificates&) = delete;
  Certificates& operator=(const Certificates&) = delete;

  const std::string& folder() const { return folder_; }

  // A new pair STEM.pem and STEM.key: of the task or role of that name.
  absl::Status Issue(const std::string& stem);
  absl::Status Issue(const std::string& stem, const Leaf& leaf);
  // The paths that Issue would give a stem.
  Leaf LeafOf(const std::string& stem) const;

  // The contents of one of the files, and other ones.
  std::string Read(const std::string& name) const;
  absl::Status Write(const std::string& name, const std::string& text) const;

 private:
  Certificates(std::string folder, std::string cluster);

  absl::Status MakeAuthority();

  const std::string folder_;
  const std::string cluster_;
  std::unique_ptr<EVP_PKEY, void (*)(EVP_PKEY*)> key_;
  std::unique_ptr<X509, void (*)(X509*)> authority_;
};

}  // namespace muster

#endif  // TESTS_TESTING_CERTIFICATES_H_
