#include "common/rpc/credentials.h"

#include <chrono>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/clock.h"
#include "common/base/reporter.h"
#include "common/rpc/server/server_listener.h"
#include "gmock/gmock.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/generic/async_generic_service.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"
#include "gtest/gtest.h"
#include "tests/testing/certificates.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

// No handshake takes so long; one that is refused is tried until then.
constexpr std::chrono::seconds kGoodPatience{30};
constexpr std::chrono::milliseconds kBadPatience{500};

class CredentialsTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    own_ = Make();
    other_ = Make();
  }
  static void TearDownTestSuite() {
    own_.reset();
    other_.reset();
  }

  CredentialsTest() {
    grpc::ServerBuilder builder;
    listener_ = *ServerListener::Listen("127.0.0.1:0");
    listener_->AddTo(&builder, Of(*own_, "ps").server);
    // Without a service gRPC does not start.
    builder.RegisterCallbackGenericService(&service_);
    server_ = builder.BuildAndStart();
    listener_->Start(SystemClock(), Reporter());
  }
  ~CredentialsTest() override {
    listener_.reset();
    server_->Shutdown(std::chrono::system_clock::now());
  }

  static std::unique_ptr<Certificates> Make() {
    absl::StatusOr<std::unique_ptr<Certificates>> made = Certificates::Make();
    EXPECT_THAT(made, IsOk());
    return *std::move(made);
  }
  static TaskCredentials Of(const Certificates& certificates,
                            const std::string& job) {
    const auto credentials =
        MutualTlsCredentials(TlsFilesOf(certificates.folder(), job));
    EXPECT_THAT(credentials, IsOk());
    return *credentials;
  }
  template <typename Patience>
  bool Connects(const std::shared_ptr<grpc::ChannelCredentials>& credentials,
                Patience patience) {
    return grpc::CreateChannel(absl::StrCat("127.0.0.1:", listener_->port()),
                               credentials)
        ->WaitForConnected(std::chrono::system_clock::now() + patience);
  }

  static std::unique_ptr<Certificates> own_;
  static std::unique_ptr<Certificates> other_;
  grpc::CallbackGenericService service_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<ServerListener> listener_;
};

std::unique_ptr<Certificates> CredentialsTest::own_;
std::unique_ptr<Certificates> CredentialsTest::other_;

TEST_F(CredentialsTest, ATaskOfTheAuthorityIsLetIn) {
  EXPECT_TRUE(Connects(Of(*own_, "worker").channel, kGoodPatience));
}

TEST_F(CredentialsTest, OneOfAnotherAuthorityDoesNotTrustThePs) {
  EXPECT_FALSE(Connects(Of(*other_, "worker").channel, kBadPatience));
}

TEST_F(CredentialsTest, PlaintextIsRefused) {
  // A plaintext client takes a connection for one; what counts is the first
  // frame of the server's, which never comes.
  EXPECT_FALSE(Connects(InsecureCredentials().channel, kBadPatience));
}

TEST_F(CredentialsTest, AFileThatIsNotThereIsNamed) {
  TlsFiles files = TlsFilesOf(own_->folder(), "ps");
  files.key += ".gone";
  EXPECT_THAT(MutualTlsCredentials(files),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("ps.key.gone")));
}

}  // namespace
}  // namespace muster
