#include "common/tls/identity.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string WhoIs(const std::vector<std::string>& uris,
                  const std::vector<std::string>& dns_names) {
  Certificate certificate;
  certificate.uris = uris;
  certificate.dns_names = dns_names;
  const auto identity = IdentityOf(certificate);
  return identity.ok() ? NameOf(*identity) : "nobody";
}

TEST(IdentityTest, TheUriNamesATaskOrARole) {
  EXPECT_EQ(WhoIs({"spiffe://muster/job/worker/task/12"}, {"worker-1.muster"}),
            "/job:worker/task:12 of cluster 'muster'");
  EXPECT_EQ(WhoIs({"https://a.b", "spiffe://a.b-c_1/role/admin"}, {}),
            "the admin of cluster 'a.b-c_1'");
}

TEST(IdentityTest, ADnsNameDoesWhereThereIsNoSuchUri) {
  EXPECT_EQ(WhoIs({}, {"localhost", "host.example.org", "ps-0.run7.example"}),
            "/job:ps/task:0 of cluster 'run7.example'");
  EXPECT_EQ(WhoIs({}, {"viewer.run7"}), "the viewer of cluster 'run7'");
}

TEST(IdentityTest, TheGrammarIsStrict) {
  for (const char* uri :
       {"spiffe://muster/job/worker/task/01", "spiffe://muster/job/worker/task",
        "spiffe://muster/job/worker/task/-1", "spiffe:///job/worker/task/1",
        "spiffe://muster/job/worker/task/1/", "spiffe://muster/role/root",
        "spiffe://Muster/job/worker/task/1", "SPIFFE://muster/role/admin",
        "spiffe://muster/job/work/task/1", "spiffe://muster/role/admin?x",
        "spiffe://muster/job/worker/task/4294967297"}) {
    EXPECT_EQ(WhoIs({uri}, {}), "nobody") << uri;
  }
  for (const char* name : {"worker-1", "worker-1-2.muster", "worker.muster",
                           "worker-01.muster", "*.muster"}) {
    EXPECT_EQ(WhoIs({}, {name}), "nobody") << name;
  }
}

TEST(IdentityTest, TwoAreNone) {
  EXPECT_EQ(
      WhoIs({"spiffe://muster/role/admin", "spiffe://muster/role/viewer"}, {}),
      "nobody");
  EXPECT_EQ(WhoIs({"spiffe://muster/role/admin", "spiffe://other"}, {}),
            "nobody");
  EXPECT_EQ(WhoIs({}, {"ps-0.a", "ps-0.b"}), "nobody");
  // A bad URI is not mended by a name.
  EXPECT_EQ(WhoIs({"spiffe://muster"}, {"ps-0.muster"}), "nobody");
}

TEST(IdentityTest, TheErrorSaysWhatIsWantedAndFound) {
  Certificate certificate;
  certificate.uris = {"spiffe://muster\n"};
  EXPECT_THAT(IdentityOf(certificate),
              StatusIs(absl::StatusCode::kUnauthenticated,
                       AllOf(HasSubstr("/job/JOB/task/INDEX"),
                             HasSubstr("found 'spiffe://muster\\n'"))));
}

TEST(IdentityTest, StemsAreThoseOfTheFiles) {
  EXPECT_EQ(StemOf("worker", 3), "worker-3");
  EXPECT_EQ(StemOf("viewer", -1), "viewer");
}

}  // namespace
}  // namespace muster
