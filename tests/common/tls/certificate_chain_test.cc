#include "common/tls/certificate_chain.h"

#include <memory>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/certificates.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

class CertificateChainTest : public testing::Test {
 protected:
  static std::unique_ptr<Certificates> Make() {
    absl::StatusOr<std::unique_ptr<Certificates>> made = Certificates::Make();
    EXPECT_THAT(made, IsOk());
    return *std::move(made);
  }
  absl::Status Check(absl::Time now, const Certificates& trusted) const {
    return CheckChain(made_->Read("worker-0.pem"), trusted.Read("ca.pem"),
                      TlsSide::kClient, now);
  }

  const std::unique_ptr<Certificates> made_ = Make();
  const absl::Time now_ = absl::Now();
};

TEST_F(CertificateChainTest, OneOfTheAuthorityIsTaken) {
  EXPECT_THAT(Check(now_, *made_), IsOk());
}

TEST_F(CertificateChainTest, OneOfAnotherAuthorityIsRefused) {
  EXPECT_THAT(Check(now_, *Make()),
              StatusIs(absl::StatusCode::kUnauthenticated,
                       HasSubstr("of another authority")));
}

TEST_F(CertificateChainTest, TimesAreNamed) {
  EXPECT_THAT(
      Check(now_ + absl::Hours(48), *made_),
      StatusIs(absl::StatusCode::kUnauthenticated, HasSubstr("ended on 20")));
  EXPECT_THAT(Check(now_ - absl::Hours(48), *made_),
              StatusIs(absl::StatusCode::kUnauthenticated,
                       HasSubstr("begins only on 20")));
}

TEST_F(CertificateChainTest, AKeyFitsItsCertificateAlone) {
  const std::string chain = made_->Read("worker-0.pem");
  EXPECT_THAT(CheckKeyPair(chain, made_->Read("worker-0.key")), IsOk());
  EXPECT_THAT(CheckKeyPair(chain, made_->Read("worker-1.key")),
              StatusIs(absl::StatusCode::kUnauthenticated,
                       HasSubstr("the key is that of another certificate")));
  EXPECT_THAT(
      CheckKeyPair(chain, "-----BEGIN PRIVATE KEY-----\nMIG"),
      StatusIs(absl::StatusCode::kUnauthenticated, HasSubstr("half written")));
}

}  // namespace
}  // namespace muster
