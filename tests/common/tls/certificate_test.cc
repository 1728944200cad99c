#include "common/tls/certificate.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/certificates.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

TEST(CertificateTest, ReadsNamesAndTimes) {
  const auto made = Certificates::Make();
  ASSERT_THAT(made, IsOk());
  Certificates::Leaf leaf = (*made)->LeafOf("worker-1");
  leaf.not_before = absl::FromUnixSeconds(1700000000);
  leaf.not_after = absl::FromUnixSeconds(1800000000);
  ASSERT_THAT((*made)->Issue("worker-1", leaf), IsOk());
  const auto read = ReadCertificate((*made)->Read("worker-1.pem"), "it");
  ASSERT_THAT(read, IsOk());
  EXPECT_EQ(read->subject, "CN=worker-1");
  EXPECT_EQ(read->not_before, leaf.not_before);
  EXPECT_EQ(read->not_after, leaf.not_after);
  EXPECT_THAT(read->uris, ElementsAre("spiffe://muster/job/worker/task/1"));
  EXPECT_THAT(read->dns_names, ElementsAre("localhost"));
  EXPECT_THAT(read->fingerprint, SizeIs(16));
}

TEST(CertificateTest, WhatIsNoneIsNamed) {
  for (const char* text : {"", "-----BEGIN CERTIFICATE-----\nMIIB", "x"}) {
    EXPECT_THAT(ReadCertificate(text, "a/worker-1.pem"),
                StatusIs(absl::StatusCode::kUnauthenticated,
                         AllOf(HasSubstr("a/worker-1.pem: "),
                               HasSubstr("half written"))));
  }
}

}  // namespace
}  // namespace muster
