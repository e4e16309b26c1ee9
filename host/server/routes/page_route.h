// The demonstration page, for browsers.
#pragma once

#include <memory>

#include "host/server/http/request_head.h"
#include "host/server/http/response.h"
#include "host/server/routes/page.h"

namespace blindfuse {

// The file of a page at the request's path, compressed if its Accept-Encoding allows it, with the
// headers that keep a browser from loading anything else. Throws Refusal: 404 if there is no such
// file, or no page.
http::Response answer_page(const std::shared_ptr<const Page>& page,
                           const http::RequestHead& request);

}  // namespace blindfuse
