#include "common/tls/peer_trust.h"

#include <memory>
#include <optional>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/certificates.h"
#include "tests/testing/reported_lines.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class PeerTrustTest : public testing::Test {
 protected:
  static std::unique_ptr<Certificates> Make(const std::string& cluster) {
    auto made = Certificates::Make(cluster);
    EXPECT_THAT(made, IsOk());
    return *std::move(made);
  }
  absl::Status Check(const std::string& leaf,
                     const std::optional<Identity>& wanted = std::nullopt) {
    return trust_.Check({leaf, "", TlsSide::kClient}, wanted);
  }

  const std::unique_ptr<Certificates> own_ = Make("muster");
  absl::Time now_ = absl::Now();
  ReportedLines said_;
  PeerTrust trust_{{"muster", "ps", 0},
                   own_->Read("ca.pem"),
                   [this] { return now_; },
                   said_.reporter(),
                   SystemClock()};
};

TEST_F(PeerTrustTest, APeerOfTheClusterIsTakenWithoutALine) {
  EXPECT_THAT(Check(own_->Read("worker-1.pem")), IsOk());
  EXPECT_THAT(Check(own_->Read("viewer.pem")), IsOk());
  EXPECT_THAT(Check(own_->Read("ps-1.pem"), Identity{"muster", "ps", 1}),
              IsOk());
  EXPECT_THAT(said_.lines(), IsEmpty());
}

TEST_F(PeerTrustTest, TheTaskThatWasDialledIsTheOnlyOne) {
  EXPECT_THAT(Check(own_->Read("worker-1.pem"), Identity{"muster", "ps", 0}),
              StatusIs(absl::StatusCode::kUnauthenticated,
                       AllOf(HasSubstr("CN=worker-1"),
                             HasSubstr("is of /job:worker/task:1"),
                             HasSubstr("wanted that of /job:ps/task:0"))));
  EXPECT_THAT(said_.lines(),
              ElementsAre(HasSubstr("W TLS: refused a client: its")));
}

TEST_F(PeerTrustTest, AnotherAuthorityIsRefusedUntilItIsTrusted) {
  const std::unique_ptr<Certificates> other = Make("muster");
  EXPECT_THAT(Check(other->Read("worker-1.pem")),
              StatusIs(absl::StatusCode::kUnauthenticated,
                       HasSubstr("of another authority")));
  trust_.SetAuthority(own_->Read("ca.pem") + other->Read("ca.pem"));
  EXPECT_THAT(Check(other->Read("worker-1.pem")), IsOk());
  EXPECT_THAT(Check(own_->Read("worker-1.pem")), IsOk());
}

TEST_F(PeerTrustTest, ACertificateOfAnotherTimeIsRefused) {
  now_ += absl::Hours(25);
  EXPECT_THAT(
      Check(own_->Read("worker-1.pem")),
      StatusIs(absl::StatusCode::kUnauthenticated, HasSubstr("ended on")));
  now_ -= absl::Hours(50);
  EXPECT_THAT(Check(own_->Read("worker-1.pem")),
              StatusIs(absl::StatusCode::kUnauthenticated,
                       HasSubstr("begins only on")));
}

TEST_F(PeerTrustTest, AnotherClusterAndNobodyAreRefused) {
  Certificates::Leaf leaf = own_->LeafOf("worker-1");
  leaf.uris = {"spiffe://other/job/worker/task/1"};
  ASSERT_THAT(own_->Issue("worker-1", leaf), IsOk());
  EXPECT_THAT(Check(own_->Read("worker-1.pem")),
              StatusIs(absl::StatusCode::kUnauthenticated,
                       HasSubstr("this is cluster 'muster'")));
  leaf.uris.clear();
  ASSERT_THAT(own_->Issue("worker-1", leaf), IsOk());
  EXPECT_THAT(Check(own_->Read("worker-1.pem")),
              StatusIs(absl::StatusCode::kUnauthenticated,
                       HasSubstr("does not say whose it is")));
  EXPECT_THAT(Check("no certificate"),
              StatusIs(absl::StatusCode::kUnauthenticated));
}

}  // namespace
}  // namespace muster
