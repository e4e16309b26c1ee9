// A certificate for the tests of HTTPS.
#pragma once

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <cstdio>
#include <filesystem>

namespace blindfuse {

// A key and a certificate for this name, signed with itself.
struct SelfSigned {
  EVP_PKEY* key = EVP_EC_gen("P-256");
  X509* certificate = X509_new();

  explicit SelfSigned(const char* alternative_name = "IP:127.0.0.1") {
    X509_set_version(certificate, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1);
    X509_gmtime_adj(X509_getm_notBefore(certificate), -60);
    X509_gmtime_adj(X509_getm_notAfter(certificate), 3600);
    X509_NAME* const name = X509_get_subject_name(certificate);
    X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC,
                               reinterpret_cast<const unsigned char*>("test"), -1, -1, 0);
    X509_set_issuer_name(certificate, name);
    X509_set_pubkey(certificate, key);
    X509_EXTENSION* const address =
        X509V3_EXT_conf_nid(nullptr, nullptr, NID_subject_alt_name, alternative_name);
    X509_add_ext(certificate, address, -1);
    X509_EXTENSION_free(address);
    X509_sign(certificate, key, EVP_sha256());
  }
  ~SelfSigned() {
    X509_free(certificate);
    EVP_PKEY_free(key);
  }
  void write(const std::filesystem::path& path) const {
    FILE* const file = std::fopen(path.c_str(), "w");
    PEM_write_X509(file, certificate);
    std::fclose(file);
  }
};

}  // namespace blindfuse
