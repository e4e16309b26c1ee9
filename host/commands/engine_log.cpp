#include "host/commands/engine_log.h"

#include <string>

#include "src/program/log.h"

namespace blindfuse {

EngineListener logging_engine_listener() {
  return {.on_info = [](const std::string& text) { log_info("{}", text); },
          .on_warning = [](const std::string& text) { log_warning("{}", text); },
          .on_quarantine =
              [](std::string_view kernel, CheckStage stage, const std::string& why) {
                log_error("the GPU's kernel {} failed its {} check, and is not used any more: {}",
                          kernel, name_of(stage), why);
              }};
}

}  // namespace blindfuse
