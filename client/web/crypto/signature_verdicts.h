// Signatures that the browser checks. It does so asynchronously, and the library does not wait. So
// the first check of a signature ends the call with the signature to be checked
// (UncheckedSignature). worker.js lets the browser check it, reports the verdict, and makes the
// call again.
#pragma once

#include <string>
#include <string_view>

#include "src/protocol/ed25519.h"

namespace blindfuse::web {

// This is not one of the library's errors: only the module's exports handle it.
struct UncheckedSignature {
  PublicKey signer;
  std::string message;
  Signature signature;

  bool operator==(const UncheckedSignature&) const = default;
};

enum class Verdict {
  kRight,
  kWrong,
  kUnable,  // the browser knows no Ed25519
};

// The verdict for verify_ed25519(), until there is another one.
void note_verdict(UncheckedSignature of, Verdict verdict);

}  // namespace blindfuse::web
