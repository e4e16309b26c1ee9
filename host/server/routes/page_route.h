// The demonstration page, for browsers.
#pragma once

#include <httplib.h>

#include <memory>
#include <string_view>

#include "host/server/routes/page.h"
#include "host/server/routes/resource.h"

namespace blindfuse {

// The file of a page at this path, compressed if the request's Accept-Encoding allows it, and in
// `response` the headers that keep a browser from loading anything else. Throws Refusal: 404 for a
// file that there is not, or when there is no page.
Resource page_resource(const std::shared_ptr<const Page>& page, std::string_view path,
                       std::string_view accept_encoding, httplib::Response& response);

}  // namespace blindfuse
