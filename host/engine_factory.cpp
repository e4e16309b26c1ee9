#include "host/engine_factory.h"

#include "host/cpu/cpu_engine.h"
#include "src/errors.h"

namespace blindfuse {

std::vector<std::string> engine_names() {
  std::vector<std::string> names = {"auto", "cpu"};
  for (std::string_view kernel : cpu_kernel_names()) names.push_back("cpu:" + std::string(kernel));
  return names;
}

void check_engine_name(std::string_view name) { make_engine(name, 0, 0, 1); }

std::unique_ptr<Engine> make_engine(std::string_view name, uint64_t row_count,
                                    uint64_t column_count, unsigned thread_count) {
  const auto cpu = [&](std::string_view kernel) {
    return make_cpu_engine(kernel, std::make_shared<Matrix>(row_count, column_count), thread_count);
  };
  if (name == "auto" || name == "cpu") return cpu("");
  if (name.starts_with("cpu:") && name != "cpu:") return cpu(name.substr(4));
  std::string known;
  for (const std::string& engine : engine_names()) known += (known.empty() ? "" : ", ") + engine;
  throw Misuse("there is no engine \"" + std::string(name) + "\"; this machine has " + known);
}

}  // namespace blindfuse
