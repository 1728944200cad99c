#include "tests/testing/certificates.h"

#include <stdlib.h>
#include <sys/stat.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/base/status_macros.h"
#include "openssl/bio.h"
#include "openssl/ec.h"
#include "openssl/pem.h"
#include "openssl/x509v3.h"

namespace muster {
namespace {

using Key = std::unique_ptr<EVP_PKEY, void (*)(EVP_PKEY*)>;
using Cert = std::unique_ptr<X509, void (*)(X509*)>;
using Bytes = std::unique_ptr<BIO, int (*)(BIO*)>;

absl::Status Failed(const char* what) {
  return absl::InternalError(absl::StrCat("certificates of a test: ", what));
}

Key NewKey() { return Key(EVP_EC_gen("P-256"), &EVP_PKEY_free); }

std::string TextOf(BIO* bytes) {
  char* data = nullptr;
  const auto size = BIO_get_mem_data(bytes, &data);
  return std::string(data, static_cast<size_t>(size));
}

std::string PemOf(X509* certificate) {
  const Bytes bytes(BIO_new(BIO_s_mem()), &BIO_free);
  PEM_write_bio_X509(bytes.get(), certificate);
  return TextOf(bytes.get());
}

std::string PemOf(EVP_PKEY* key) {
  const Bytes bytes(BIO_new(BIO_s_mem()), &BIO_free);
  PEM_write_bio_PrivateKey(bytes.get(), key, nullptr, nullptr, 0, nullptr,
                           nullptr);
  return TextOf(bytes.get());
}

void Extend(X509* certificate, X509* issuer, int nid,
            const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  X509_EXTENSION* const extension =
      X509V3_EXT_conf_nid(nullptr, &context, nid, value.c_str());
  X509_add_ext(certificate, extension, -1);
  X509_EXTENSION_free(extension);
}

// Neither extended nor signed yet.
Cert NewCertificate(const std::string& name, EVP_PKEY* key,
                    absl::Time not_before, absl::Time not_after) {
  static int64_t serial = 0;
  Cert made(X509_new(), &X509_free);
  X509_set_version(made.get(), X509_VERSION_3);
  ASN1_INTEGER_set_int64(X509_get_serialNumber(made.get()), ++serial);
  const time_t begin = absl::ToTimeT(not_before);
  const time_t end = absl::ToTimeT(not_after);
  X509_time_adj_ex(X509_getm_notBefore(made.get()), 0, 0,
                   const_cast<time_t*>(&begin));
  X509_time_adj_ex(X509_getm_notAfter(made.get()), 0, 0,
                   const_cast<time_t*>(&end));
  X509_NAME_add_entry_by_txt(
      X509_get_subject_name(made.get()), "CN", MBSTRING_UTF8,
      reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1, 0);
  X509_set_pubkey(made.get(), key);
  return made;
}

std::string AlternativeNames(const Certificates::Leaf& leaf) {
  std::vector<std::string> names;
  for (const auto& uri : leaf.uris) names.push_back("URI:" + uri);
  for (const auto& name : leaf.dns_names) names.push_back("DNS:" + name);
  return absl::StrJoin(names, ",");
}

}  // namespace

Certificates::Certificates(std::string folder, std::string cluster)
    : folder_(std::move(folder)),
      cluster_(std::move(cluster)),
      key_(NewKey()),
      authority_(nullptr, &X509_free) {}

Certificates::~Certificates() {
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

absl::StatusOr<std::unique_ptr<Certificates>> Certificates::Make(
    const std::string& cluster) {
  const char* const parent = getenv("TMPDIR");
  std::string folder = absl::StrCat(parent == nullptr ? "/tmp" : parent,
                                    "/muster_certificates_XXXXXX");
  if (mkdtemp(folder.data()) == nullptr) {
    return absl::ErrnoToStatus(errno, absl::StrCat("making ", folder));
  }
  auto made = std::unique_ptr<Certificates>(new Certificates(folder, cluster));
  RETURN_IF_ERROR(made->MakeAuthority());
  for (const char* stem : {"ps-0", "ps-1", "worker-0", "worker-1", "worker-2",
                           "chief-0", "evaluator-0", "viewer", "admin"}) {
    RETURN_IF_ERROR(made->Issue(stem));
  }
  return made;
}

absl::Status Certificates::MakeAuthority() {
  const absl::Time now = absl::Now();
  authority_ = NewCertificate("authority", key_.get(), now - absl::Hours(99),
                              now + absl::Hours(9999));
  X509_set_issuer_name(authority_.get(),
                       X509_get_subject_name(authority_.get()));
  Extend(authority_.get(), authority_.get(), NID_basic_constraints,
         "critical,CA:TRUE");
  Extend(authority_.get(), authority_.get(), NID_subject_key_identifier,
         "hash");
  if (X509_sign(authority_.get(), key_.get(), EVP_sha256()) == 0) {
    return Failed("the authority");
  }
  return Write("ca.pem", PemOf(authority_.get()));
}

Certificates::Leaf Certificates::LeafOf(const std::string& stem) const {
  const std::vector<std::string> parts = absl::StrSplit(stem, '-');
  Leaf leaf;
  leaf.uris.push_back(parts.size() == 1
                          ? absl::StrCat("spiffe://", cluster_, "/role/", stem)
                          : absl::StrCat("spiffe://", cluster_, "/job/",
                                         parts[0], "/task/", parts[1]));
  leaf.dns_names.push_back("localhost");
  return leaf;
}

absl::Status Certificates::Issue(const std::string& stem) {
  return Issue(stem, LeafOf(stem));
}

absl::Status Certificates::Issue(const std::string& stem, const Leaf& leaf) {
  const Key key = NewKey();
  const Cert made =
      NewCertificate(stem, key.get(), leaf.not_before, leaf.not_after);
  X509_set_issuer_name(made.get(), X509_get_subject_name(authority_.get()));
  Extend(made.get(), authority_.get(), NID_basic_constraints,
         "critical,CA:FALSE");
  Extend(made.get(), authority_.get(), NID_authority_key_identifier,
         "keyid:always");
  Extend(made.get(), authority_.get(), NID_ext_key_usage,
         "serverAuth,clientAuth");
  const std::string names = AlternativeNames(leaf);
  if (!names.empty()) {
    Extend(made.get(), authority_.get(), NID_subject_alt_name, names);
  }
  if (X509_sign(made.get(), key_.get(), EVP_sha256()) == 0) {
    return Failed(stem.c_str());
  }
  RETURN_IF_ERROR(Write(stem + ".pem", PemOf(made.get())));
  return Write(stem + ".key", PemOf(key.get()));
}

std::string Certificates::Read(const std::string& name) const {
  std::ifstream file(absl::StrCat(folder_, "/", name));
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

absl::Status Certificates::Write(const std::string& name,
                                 const std::string& text) const {
  const std::string path = absl::StrCat(folder_, "/", name);
  std::ofstream file(path);
  // As `muster certs` has it.
  if (absl::EndsWith(name, ".key")) chmod(path.c_str(), 0600);
  file << text;
  file.close();
  return file.good() ? absl::OkStatus() : Failed(name.c_str());
}

}  // namespace muster
