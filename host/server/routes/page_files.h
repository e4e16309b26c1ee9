// The files that cmake/page.cmake put into the program.
#pragma once

#include <span>

#include "host/server/routes/page.h"

namespace blindfuse {

// None if the client for browsers was not built.
std::span<const PageFile> embedded_page_files();

}  // namespace blindfuse
