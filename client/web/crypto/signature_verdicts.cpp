#include "client/web/crypto/signature_verdicts.h"

#include <optional>
#include <utility>

namespace blindfuse {
namespace {

struct NotedVerdict {
  web::UncheckedSignature of;
  web::Verdict verdict = web::Verdict::kUnable;
};

// One verdict is enough: a client has one manifest after another.
std::optional<NotedVerdict>& noted_verdict() {
  static std::optional<NotedVerdict> noted;
  return noted;
}

}  // namespace

namespace web {

void note_verdict(UncheckedSignature of, Verdict verdict) {
  noted_verdict() = NotedVerdict{std::move(of), verdict};
}

}  // namespace web

bool verify_ed25519(const PublicKey& signer, std::string_view message, const Signature& signature) {
  web::UncheckedSignature asked{signer, std::string(message), signature};
  const auto& noted = noted_verdict();
  if (!noted || !(noted->of == asked)) throw asked;
  if (noted->verdict == web::Verdict::kUnable) {
    throw CannotVerify(
        "this browser cannot check the database's signature (crypto.subtle has no Ed25519, or the "
        "page did not come by https): use a newer browser, or serve the page by https");
  }
  return noted->verdict == web::Verdict::kRight;
}

}  // namespace blindfuse
