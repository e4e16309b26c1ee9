#include "host/commands/commands.h"

#include <algorithm>

#include "host/engines/engine_factory.h"
#include "host/server/routes/page.h"

namespace blindfuse {

std::string built_in() {
  const auto said = [](bool is_there) { return is_there ? "built in\n" : "not built in\n"; };
  const std::vector<std::string> names = built_in_engines();
  std::string engines;
  for (const std::string& name : names) engines += (engines.empty() ? "" : ", ") + name;
  return std::string("page for browsers: ") + said(Page::built_in() != nullptr) +
         "CUDA: " + said(std::ranges::count(names, "cuda") > 0) + "engines: " + engines;
}

}  // namespace blindfuse
