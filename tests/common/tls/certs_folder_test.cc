#include "common/tls/certs_folder.h"

#include <filesystem>
#include <memory>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/certificates.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class CertsFolderTest : public testing::Test {
 protected:
  CertsFolderTest() {
    absl::StatusOr<std::unique_ptr<Certificates>> made = Certificates::Make();
    EXPECT_THAT(made, IsOk());
    made_ = *std::move(made);
  }
  absl::Status Status(absl::string_view job = "worker", int32_t index = 1) {
    return ReadCerts(made_->folder(), job, index, absl::Now()).status();
  }

  std::unique_ptr<Certificates> made_;
};

TEST_F(CertsFolderTest, ReadsTheFilesOfATask) {
  const auto certs = ReadCerts(made_->folder(), "worker", 1, absl::Now());
  ASSERT_THAT(certs, IsOk());
  EXPECT_EQ(NameOf(certs->identity), "/job:worker/task:1 of cluster 'muster'");
  EXPECT_EQ(certs->certificate.subject, "CN=worker-1");
  EXPECT_EQ(certs->key, made_->Read("worker-1.key"));
  EXPECT_THAT(Status("viewer", -1), IsOk());
}

TEST_F(CertsFolderTest, AnyTaskIsTheOneWhoseCertificateIsThere) {
  EXPECT_THAT(OwnIndexIn(made_->folder(), "worker"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("3 tasks of job worker (0, 1, 2); leave")));
  for (const char* const name : {"worker-0.pem", "worker-1.pem"}) {
    std::filesystem::remove(absl::StrCat(made_->folder(), "/", name));
  }
  EXPECT_THAT(OwnIndexIn(made_->folder(), "worker"), IsOkAndHolds(2));
  EXPECT_THAT(OwnIndexIn("/nowhere", "worker"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("--certs_dir=/nowhere: ")));
}

TEST_F(CertsFolderTest, TheFolderMayBeALinkThatIsSwapped) {
  const std::string link = absl::StrCat(made_->folder(), "/link");
  std::filesystem::create_directory_symlink(made_->folder(), link);
  EXPECT_THAT(ReadCerts(link, "ps", 0, absl::Now()), IsOk());
}

TEST_F(CertsFolderTest, AMissingFileIsNamed) {
  for (const char* name : {"ca.pem", "worker-1.pem", "worker-1.key"}) {
    const std::string text = made_->Read(name);
    std::filesystem::remove(absl::StrCat(made_->folder(), "/", name));
    EXPECT_THAT(Status(),
                StatusIs(absl::StatusCode::kNotFound, HasSubstr(name)));
    ASSERT_THAT(made_->Write(name, text), IsOk());
  }
}

TEST_F(CertsFolderTest, AHalfWrittenPairIsNamed) {
  const std::string key = made_->Read("worker-1.key");
  ASSERT_THAT(made_->Issue("worker-1"), IsOk());
  ASSERT_THAT(made_->Write("worker-1.key", key), IsOk());
  EXPECT_THAT(Status(), StatusIs(absl::StatusCode::kUnauthenticated,
                                 AllOf(HasSubstr("/worker-1.key: "),
                                       HasSubstr("another certificate"))));
}

TEST_F(CertsFolderTest, WhatPeersWouldRefuseIsNamed) {
  Certificates::Leaf leaf = made_->LeafOf("worker-1");
  leaf.not_after = absl::Now() - absl::Minutes(1);
  ASSERT_THAT(made_->Issue("worker-1", leaf), IsOk());
  EXPECT_THAT(Status(), StatusIs(absl::StatusCode::kUnauthenticated,
                                 AllOf(HasSubstr("/worker-1.pem: ended on"))));
  ASSERT_THAT(made_->Issue("worker-1", made_->LeafOf("worker-2")), IsOk());
  EXPECT_THAT(Status(),
              StatusIs(absl::StatusCode::kUnauthenticated,
                       AllOf(HasSubstr("wanted the certificate of worker-1"),
                             HasSubstr("/job:worker/task:2"))));
}

}  // namespace
}  // namespace muster
