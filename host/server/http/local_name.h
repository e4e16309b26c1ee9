// Whether a request was sent to this machine by a name of its own.
#pragma once

#include <string_view>

namespace blindfuse::http {

// Of a request's header Host, with or without a port: whether it is localhost or an address, so
// that only this machine's own configuration leads there; or empty. A web page under any other name
// may lead that name to a loopback address (DNS rebinding), and is then of the same origin.
bool is_local_name(std::string_view host);

}  // namespace blindfuse::http
