// Converts the client library's errors for JavaScript.
#pragma once

#include <exception>
#include <nlohmann/json.hpp>
#include <string>

namespace blindfuse::web {

// {"code", "message"}, with "status" if a server refused and "retryAfterS" if it said when to come
// back. Codes: client/web/blindfuse.d.ts. If the message names a flag of the native client, the
// report names the page's counterpart.
nlohmann::json error_report(std::exception_ptr error);

// A text of the client library, with the page's counterparts in place of the native client's flags.
std::string in_our_words(std::string text);

}  // namespace blindfuse::web
