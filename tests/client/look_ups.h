// Look-ups of a session by keys that are strings.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "client/look_up.h"
#include "client/secret.h"
#include "client/session.h"

namespace blindfuse {

inline std::vector<Answer> answers_of(Session& session, std::span<const std::string> keys) {
  const std::vector<std::string_view> views(keys.begin(), keys.end());
  return session.look_up(views);
}
inline std::vector<std::optional<std::string>> values_of(Session& session,
                                                         std::span<const std::string> keys) {
  return values_of(answers_of(session, keys));
}
inline std::optional<std::string> value_of(Session& session, std::string_view key) {
  return values_of(session.look_up({&key, 1})).front();
}

inline std::optional<std::string> value_of(Session&& session, std::string_view key) {
  return value_of(session, key);
}

// A look-up in steps, with its keys.
class Steps {
 public:
  Steps(Session& session, std::vector<std::string> keys)
      : keys_(std::move(keys)), views_(keys_.begin(), keys_.end()), look_up_(session, views_) {}
  LookUp& operator*() { return look_up_; }
  LookUp* operator->() { return &look_up_; }

 private:
  const std::vector<std::string> keys_;
  const std::vector<std::string_view> views_;
  LookUp look_up_;
};

inline KeyCopies copies_of(std::span<const std::string> keys) {
  KeyCopies copies(keys.size());
  for (const std::string& key : keys) copies.add(key);
  return copies;
}

}  // namespace blindfuse
