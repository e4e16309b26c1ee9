// Whether a request was sent to this machine by a name of its own.
#pragma once

#include <string_view>

namespace blindfuse::http {

// Whether a request's header Host, with or without a port, is localhost or an address, so that only
// this machine's own configuration leads there, or is empty. A web page under any other name may
// resolve that name to a loopback address (DNS rebinding), and is then of the same origin.
bool is_local_name(std::string_view host);

}  // namespace blindfuse::http
