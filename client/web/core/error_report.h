// The client library's errors as JavaScript gets them.
#pragma once

#include <exception>
#include <nlohmann/json.hpp>
#include <string>

namespace blindfuse::web {

// {"code", "message"}, with "status" when a server refused and "retryAfterS" when it said when to
// come back. Codes: client/web/blindfuse.d.ts. Where the message names a flag of the native
// client, the report names what a page has instead.
nlohmann::json error_report(std::exception_ptr error);

// A text of the client library, with what a page has for the flags of the native client.
std::string in_our_words(std::string text);

}  // namespace blindfuse::web
