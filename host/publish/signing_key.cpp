#include "host/publish/signing_key.h"

#include <fcntl.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <new>
#include <string>
#include <utility>

#include "src/base/errors.h"
#include "src/system/file.h"

namespace blindfuse {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kKeyFileBytesMax = 64 << 10;
constexpr mode_t kOwnerAlone = 0600;

using Bio = std::unique_ptr<BIO, decltype(&BIO_free)>;

// A PEM file that has a password is refused: OpenSSL would ask the terminal for it.
int no_password(char*, int, int, void*) { return -1; }

// The text of a private key, wiped at the end.
class KeyText {
 public:
  explicit KeyText(std::string text) : text_(std::move(text)) {}
  ~KeyText() { OPENSSL_cleanse(text_.data(), text_.size()); }
  KeyText(const KeyText&) = delete;
  KeyText& operator=(const KeyText&) = delete;

  const std::string& get() const { return text_; }

 private:
  std::string text_;
};

void write_all(int file, const fs::path& path, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(file, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      throw ResourceError("cannot write " + path.string() + ": " + std::strerror(errno));
    }
    text.remove_prefix(static_cast<size_t>(written));
  }
}

}  // namespace

struct SigningKey::Key {
  explicit Key(EVP_PKEY* made) : pkey(made, EVP_PKEY_free) {
    if (!pkey) throw std::bad_alloc();
  }
  std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> pkey;
};

SigningKey::SigningKey(std::unique_ptr<Key> key) : key_(std::move(key)) {
  size_t size = public_key_.size();
  const int done = EVP_PKEY_get_raw_public_key(key_->pkey.get(), public_key_.data(), &size);
  invariant(done == 1 && size == public_key_.size(), "a private key has a public one");
}

SigningKey::SigningKey(SigningKey&&) noexcept = default;
SigningKey::~SigningKey() = default;

SigningKey SigningKey::make(const RandomSource& random) {
  std::array<uint8_t, 32> seed{};
  random(seed);
  EVP_PKEY* const made =
      EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, nullptr, seed.data(), seed.size());
  OPENSSL_cleanse(seed.data(), seed.size());
  return SigningKey(std::make_unique<Key>(made));
}

SigningKey SigningKey::read(const fs::path& file) {
  const KeyText text(read_text_file(file, kKeyFileBytesMax));
  const Bio bio(BIO_new_mem_buf(text.get().data(), static_cast<int>(text.get().size())), BIO_free);
  if (!bio) throw std::bad_alloc();
  EVP_PKEY* const found = PEM_read_bio_PrivateKey(bio.get(), nullptr, no_password, nullptr);
  ERR_clear_error();
  if (found == nullptr) {
    throw InputError(file.string() +
                     " is not a private key without a password (PKCS #8, PEM); make one with "
                     "`blindfuse keygen`");
  }
  auto key = std::make_unique<Key>(found);
  if (EVP_PKEY_get_id(found) != EVP_PKEY_ED25519) {
    throw InputError(file.string() +
                     " is a private key of another kind than Ed25519; make one with `blindfuse "
                     "keygen`");
  }
  return SigningKey(std::move(key));
}

void SigningKey::write(const fs::path& path) const {
  const Bio bio(BIO_new(BIO_s_secmem()), BIO_free);
  if (!bio || PEM_write_bio_PKCS8PrivateKey(bio.get(), key_->pkey.get(), nullptr, nullptr, 0,
                                            nullptr, nullptr) != 1) {
    throw std::bad_alloc();
  }
  char* text = nullptr;
  const auto size = static_cast<size_t>(BIO_get_mem_data(bio.get(), &text));

  const FileDescriptor file(
      open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, kOwnerAlone));
  if (!file.is_open() && errno == EEXIST) {
    throw InputError(path.string() +
                     " exists, and a key that is lost cannot be made again; choose another name");
  }
  if (!file.is_open()) {
    throw InputError("cannot make " + path.string() + ": " + std::strerror(errno));
  }
  try {
    write_all(file.get(), path, {text, size});
    sync_file(file, path);
    sync_folder(fs::absolute(path).parent_path());
  } catch (...) {
    unlink(path.c_str());
    throw;
  }
}

Signature SigningKey::sign(std::string_view message) const {
  const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(EVP_MD_CTX_new(),
                                                                        EVP_MD_CTX_free);
  Signature signature;
  size_t size = signature.size();
  if (!context ||
      EVP_DigestSignInit(context.get(), nullptr, nullptr, nullptr, key_->pkey.get()) != 1 ||
      EVP_DigestSign(context.get(), signature.data(), &size,
                     reinterpret_cast<const uint8_t*>(message.data()), message.size()) != 1) {
    throw std::bad_alloc();
  }
  invariant(size == signature.size(), "a signature has 64 bytes");
  return signature;
}

ManifestSignature SigningKey::sign(const Manifest& manifest, uint64_t sequence,
                                   uint64_t time) const {
  ManifestSignature made{sequence, time, public_key_, {}};
  made.signature = sign(signed_text(manifest, made));
  return made;
}

}  // namespace blindfuse
