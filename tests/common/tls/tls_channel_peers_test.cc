#include <memory>
#include <string>
#include <utility>

#include "common/rpc/byte_channel.h"
#include "common/tls/pem.h"
#include "common/tls/tls_channel.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "openssl/err.h"
#include "openssl/evp.h"
#include "openssl/ssl.h"
#include "openssl/x509.h"
#include "tests/common/tls/raw_tls_peer.h"
#include "tests/common/tls/tls_channel_fixture.h"
#include "tests/testing/certificates.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;

// The authority of `pem`, vouched for by another one, which goes to `root`.
std::string PutBelow(const std::string& pem, std::string* root) {
  using Cert = std::unique_ptr<X509, void (*)(X509*)>;
  const CertificateStack authority = ReadCertificates(pem);
  const PrivateKey key(EVP_EC_gen("P-256"), &EVP_PKEY_free);
  const Cert above(X509_dup(sk_X509_value(authority.get(), 0)), &X509_free);
  X509_NAME* const name = X509_get_subject_name(above.get());
  X509_NAME_add_entry_by_txt(name, "OU", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>("root"), -1,
                             -1, 0);
  X509_set_issuer_name(above.get(), name);
  X509_set_pubkey(above.get(), key.get());
  EXPECT_GT(X509_sign(above.get(), key.get(), EVP_sha256()), 0);
  *root = PemOf(above.get());
  const Cert below(X509_dup(sk_X509_value(authority.get(), 0)), &X509_free);
  X509_set_issuer_name(below.get(), name);
  EXPECT_GT(X509_sign(below.get(), key.get(), EVP_sha256()), 0);
  return PemOf(below.get());
}

class TlsChannelPeersTest : public TlsChannelFixture {};

TEST_F(TlsChannelPeersTest, AnAuthorityBetween_ComesWithTheCertificate) {
  std::string root;
  const std::string between = PutBelow(own_->Read("ca.pem"), &root);
  ASSERT_THAT(own_->Write("ca.pem", root), IsOk());
  for (const std::string name : {"ps-0.pem", "worker-1.pem"}) {
    ASSERT_THAT(own_->Write(name, own_->Read(name) + between), IsOk());
  }
  const auto [dialer, accepter] = Meeting(*own_);
  EXPECT_THAT(dialer, IsOk());
  EXPECT_THAT(accepter, IsOk());
}

TEST_F(TlsChannelPeersTest, AnotherAuthority_IsRefusedAndToldSo) {
  const auto [dialer, accepter] = Meeting(*Make());
  EXPECT_THAT(dialer, StatusIs(absl::StatusCode::kUnauthenticated,
                               AllOf(HasSubstr("its certificate CN=ps-0"),
                                     HasSubstr("is of another authority"))));
  EXPECT_THAT(accepter,
              StatusIs(absl::StatusCode::kUnauthenticated,
                       HasSubstr("the peer refused this task's certificate "
                                 "(TLS alert 42, bad certificate)")));
}

TEST_F(TlsChannelPeersTest, AnotherTaskThanTheOneDialled_IsRefused) {
  EXPECT_THAT(Meeting(*own_, /*ps=*/1).first,
              StatusIs(absl::StatusCode::kUnauthenticated,
                       HasSubstr("wanted that of /job:ps/task:1")));
}

TEST_F(TlsChannelPeersTest, AServerWhoseCertificateHasEnded_IsRefused) {
  now_ += absl::Hours(25);
  EXPECT_THAT(Meeting(*own_).first, StatusIs(absl::StatusCode::kUnauthenticated,
                                             HasSubstr("ended on")));
}

// Who dials has finished its handshake by then.
TEST_F(TlsChannelPeersTest, AClientThatIsRefused_IsToldSo) {
  const auto is_told = StatusIs(absl::StatusCode::kUnauthenticated,
                                AllOf(HasSubstr("the peer refused this task's "
                                                "certificate"),
                                      HasSubstr("its log says why")));
  Certificates::Leaf leaf = own_->LeafOf("worker-1");
  leaf.uris = {"spiffe://other/job/worker/task/1"};
  ASSERT_THAT(own_->Issue("worker-1", leaf), IsOk());
  const auto [stranger, accepter] = Meeting(*own_);
  EXPECT_THAT(accepter, StatusIs(absl::StatusCode::kUnauthenticated,
                                 HasSubstr("of cluster 'other'")));
  EXPECT_THAT(stranger, is_told);

  leaf = own_->LeafOf("worker-1");
  leaf.not_after = now_ - absl::Hours(1);
  ASSERT_THAT(own_->Issue("worker-1", leaf), IsOk());
  const auto [late, second_accepter] = Meeting(*own_);
  EXPECT_THAT(second_accepter, StatusIs(absl::StatusCode::kUnauthenticated,
                                        HasSubstr("ended on")));
  EXPECT_THAT(late, is_told);
  EXPECT_THAT(said_.lines(), Contains(HasSubstr("refused a client: its "
                                                "certificate CN=worker-1")));
}

TEST_F(TlsChannelPeersTest, ARefusalThatASendMeetsFirst_IsReadAllTheSame) {
  Certificates::Leaf leaf = own_->LeafOf("worker-1");
  leaf.uris = {"spiffe://other/job/worker/task/1"};
  ASSERT_THAT(own_->Issue("worker-1", leaf), IsOk());
  auto [one, other] = MakePair();
  const Channel dialer = Dial(std::move(one), *own_);
  Guest accepter(Accept(std::move(other)));
  while (!*dialer->Handshake()) accepter.Go();
  for (int i = 0; i < kTurns; ++i) accepter.Go();
  ASSERT_THAT(accepter.status(), StatusIs(absl::StatusCode::kUnauthenticated));
  std::string token(16, 'x');
  const iovec piece = PieceOf(&token);
  ASSERT_THAT(dialer->Send({&piece, 1}), IsOk());
  EXPECT_THAT(dialer->Flush(), StatusIs(absl::StatusCode::kUnauthenticated,
                                        HasSubstr("refused this task's")));
}

TEST_F(TlsChannelPeersTest, WithoutACertificate_IsRefusedAndToldSo) {
  auto [one, other] = MakePair();
  RawTlsPeer peer(std::move(one));
  const Guest accepter = AcceptRaw(std::move(other), &peer);
  EXPECT_THAT(accepter.status(),
              StatusIs(absl::StatusCode::kUnauthenticated,
                       HasSubstr("peer did not return a certificate")));
  ERR_clear_error();
  EXPECT_EQ(peer.Receive(), "");
  EXPECT_EQ(ERR_GET_REASON(ERR_peek_error()),
            SSL_AD_REASON_OFFSET + SSL_AD_CERTIFICATE_REQUIRED);
}

TEST_F(TlsChannelPeersTest, OlderTls_IsRefused) {
  auto [one, other] = MakePair();
  RawTlsPeer peer(std::move(one));
  peer.Show(*own_, "worker-1");
  SSL_set_min_proto_version(peer.ssl(), 0);
  SSL_set_max_proto_version(peer.ssl(), TLS1_2_VERSION);
  EXPECT_THAT(AcceptRaw(std::move(other), &peer).status(),
              StatusIs(absl::StatusCode::kUnauthenticated,
                       HasSubstr("unsupported protocol")));
}

TEST_F(TlsChannelPeersTest, PlaintextEitherWay_IsNamed) {
  auto [one, other] = MakePair();
  Guest plain(MakePlainChannel(std::move(one)));
  Guest accepter(Accept(std::move(other)));
  std::string more = "GET / HTTP/1.1\r\n";
  const iovec piece = PieceOf(&more);
  ASSERT_THAT(plain->Send({&piece, 1}), IsOk());
  accepter.Go();
  EXPECT_THAT(accepter.status(),
              StatusIs(absl::StatusCode::kUnauthenticated,
                       HasSubstr("the peer speaks no TLS, and this task")));

  auto [third, fourth] = MakePair();
  Guest dialer(Dial(std::move(third), *own_));
  const Channel answering = MakePlainChannel(std::move(fourth));
  std::string answer(40, 'm');
  const iovec frame = PieceOf(&answer);
  ASSERT_THAT(answering->Send({&frame, 1}), IsOk());
  dialer.Go();
  EXPECT_THAT(dialer.status(),
              StatusIs(absl::StatusCode::kUnauthenticated,
                       HasSubstr("the peer speaks no TLS, and this task")));
}

TEST_F(TlsChannelPeersTest, AKeyOfAnotherCertificate_IsRefused) {
  EXPECT_THAT(MakeTlsContext(own_->Read("ps-0.pem"), own_->Read("ps-1.key")),
              StatusIs(absl::StatusCode::kUnauthenticated,
                       HasSubstr("key: private key mismatch;")));
  EXPECT_THAT(
      MakeTlsContext("", ""),
      StatusIs(absl::StatusCode::kUnauthenticated, HasSubstr("no PEM")));
}

}  // namespace
}  // namespace muster
