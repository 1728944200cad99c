#include "common/tls/certificate.h"

#include <ctime>
#include <memory>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "common/base/escape.h"
#include "openssl/bio.h"
#include "openssl/evp.h"
#include "openssl/pem.h"
#include "openssl/x509.h"
#include "openssl/x509v3.h"

namespace muster {
namespace {

constexpr size_t kFingerprintBytes = 8;

std::string FingerprintOf(X509* x509) {
  unsigned char digest[EVP_MAX_MD_SIZE] = {};
  unsigned int size = 0;
  X509_digest(x509, EVP_sha256(), digest, &size);
  return absl::BytesToHexString(absl::string_view(
      reinterpret_cast<const char*>(digest), kFingerprintBytes));
}

std::string SubjectOf(X509* x509) {
  char text[256] = {};
  X509_NAME_oneline(X509_get_subject_name(x509), text, sizeof(text));
  absl::string_view subject = text;
  if (!subject.empty() && subject[0] == '/') subject.remove_prefix(1);
  return EscapeForLog(subject);
}

absl::Time TimeOf(const ASN1_TIME* asn1) {
  std::tm parts = {};
  if (ASN1_TIME_to_tm(asn1, &parts) != 1) return absl::InfinitePast();
  return absl::FromTM(parts, absl::UTCTimeZone());
}

std::string TextOf(const ASN1_IA5STRING* text) {
  return std::string(reinterpret_cast<const char*>(ASN1_STRING_get0_data(text)),
                     static_cast<size_t>(ASN1_STRING_length(text)));
}

void ReadAlternativeNames(X509* x509, Certificate* certificate) {
  const std::unique_ptr<GENERAL_NAMES, void (*)(GENERAL_NAMES*)> names(
      static_cast<GENERAL_NAMES*>(
          X509_get_ext_d2i(x509, NID_subject_alt_name, nullptr, nullptr)),
      &GENERAL_NAMES_free);
  if (names == nullptr) return;
  for (int i = 0; i < sk_GENERAL_NAME_num(names.get()); ++i) {
    const GENERAL_NAME* const name = sk_GENERAL_NAME_value(names.get(), i);
    if (name->type == GEN_URI) {
      certificate->uris.push_back(TextOf(name->d.uniformResourceIdentifier));
    } else if (name->type == GEN_DNS) {
      certificate->dns_names.push_back(TextOf(name->d.dNSName));
    }
  }
}

}  // namespace

absl::StatusOr<Certificate> ReadCertificate(absl::string_view pem,
                                            absl::string_view where) {
  const std::unique_ptr<BIO, int (*)(BIO*)> bytes(
      BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())), &BIO_free);
  const std::unique_ptr<X509, void (*)(X509*)> x509(
      PEM_read_bio_X509(bytes.get(), nullptr, nullptr, nullptr), &X509_free);
  if (x509 == nullptr) {
    return absl::UnauthenticatedError(
        absl::StrCat(where, ": wanted a certificate in PEM form, found ",
                     pem.size(), " bytes without one; is it half written?"));
  }
  Certificate certificate;
  certificate.subject = SubjectOf(x509.get());
  certificate.fingerprint = FingerprintOf(x509.get());
  certificate.not_before = TimeOf(X509_get0_notBefore(x509.get()));
  certificate.not_after = TimeOf(X509_get0_notAfter(x509.get()));
  ReadAlternativeNames(x509.get(), &certificate);
  return certificate;
}

std::string NameOf(const Certificate& certificate) {
  return absl::StrCat(certificate.subject, " (sha256 ", certificate.fingerprint,
                      ")");
}

}  // namespace muster
