#include <memory>
#include <nlohmann/json.hpp>

#include "host/server/routes/api.h"
#include "host/server/routes/openapi_text.h"
#include "src/base/base64.h"

namespace blindfuse {
namespace {

using nlohmann::ordered_json;

// Strings of base64 of exactly `bytes` bytes, at most count_max of them.
void set_sizes(ordered_json& array, uint64_t bytes, uint64_t count_max) {
  const uint64_t digits = (bytes * 8 + 5) / 6;
  const uint64_t padding = base64_length(bytes) - digits;
  array["maxItems"] = count_max;
  ordered_json& items = array["items"];
  items["minLength"] = base64_length(bytes);
  items["maxLength"] = base64_length(bytes);
  // The bits of the last digit that belong to no byte are zero.
  constexpr const char* kLast[] = {"[A-Za-z0-9+/]", "[AEIMQUYcgkosw048]", "[AQgw]"};
  items["pattern"] =
      std::string("^[A-Za-z0-9+/]*") + kLast[padding] + std::string(padding, '=') + "$";
}

// The parts of a hint have one name in each mode, and the other is refused.
void keep_parameter_of_mode(ordered_json& paths, Mode mode) {
  const char* other = mode == Mode::kPacked ? "shards" : "packs";
  for (auto& [method, operation] : paths["/v1/epochs/{epoch}/hint"].items()) {
    ordered_json& parameters = operation["parameters"];
    for (size_t i = parameters.size(); i-- > 0;) {
      if (parameters[i].value("name", "") == other) parameters.erase(i);
    }
  }
}

}  // namespace

std::string openapi_document(const ServingEpoch& epoch, const ApiOptions& options) {
  ordered_json document = ordered_json::parse(kOpenApiText);
  const Layout& layout = epoch.layout();
  const uint64_t count_max = query_limits(epoch, options).query_count_max;
  ordered_json& schemas = document["components"]["schemas"];
  set_sizes(schemas["Queries"]["properties"]["queries"], layout.query_bytes(), count_max);
  set_sizes(schemas["Responses"]["properties"]["responses"], layout.response_bytes(), count_max);
  ordered_json& binary = schemas["BinaryQueries"];
  binary["minLength"] = layout.query_bytes();
  binary["maxLength"] = layout.query_bytes() * count_max;
  binary["description"] = "1 to " + std::to_string(count_max) + " queries, one after another, of " +
                          std::to_string(layout.query_bytes()) + " bytes each.";
  ordered_json& paths = document["paths"];
  keep_parameter_of_mode(paths, layout.mode());
  if (!options.page) paths.erase("/");
  if (options.api_keys) {
    // Every operation that may have a key then needs one.
    for (auto& [path, operations] : paths.items()) {
      for (auto& [method, operation] : operations.items()) {
        if (operation.contains("security"))
          operation["security"] = ordered_json::parse(R"([{"apiKey":[]}])");
      }
    }
  }
  document["components"]["parameters"]["epoch"]["example"] = epoch.database().epoch;
  return document.dump() + "\n";
}

http::Response answer_openapi(const ApiRequest& request) {
  ApiContext& context = request.context;
  const auto epoch = context.epochs.current();
  const std::lock_guard lock(context.openapi_mutex);
  if (context.openapi_epoch != epoch->database().epoch) {
    context.openapi_text =
        std::make_shared<const std::string>(openapi_document(*epoch, context.options));
    context.openapi_epoch = epoch->database().epoch;
  }
  const auto body = std::make_shared<http::MemoryBody>(context.openapi_text);
  http::Response response{.range = {body, 0, body->size()}};
  response.set_header("Content-Type", "application/json");
  response.set_header("Cache-Control", "no-cache");
  return response;
}

}  // namespace blindfuse
