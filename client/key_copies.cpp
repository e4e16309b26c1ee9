#include "client/key_copies.h"

#include "client/secret.h"
#include "src/errors.h"

namespace blindfuse {

KeyCopies::~KeyCopies() {
  for (std::string& text : texts_) wipe_memory(text.data(), text.size());
}

void KeyCopies::add(std::string_view key) {
  invariant(texts_.size() < texts_.capacity(), "there is room for the key");
  texts_.emplace_back(key);
}

void KeyCopies::append(std::span<const std::string> keys) {
  for (const std::string& key : keys) add(key);
}

}  // namespace blindfuse
