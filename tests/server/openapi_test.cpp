// The document against the server that it describes, both ways round.
#include "host/server/routes/api.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "tests/server/running_server.h"
#include "tests/vectors.h"

namespace blindfuse::server_testing {
namespace {

using nlohmann::json;
using ::testing::Contains;
using ::testing::MatchesRegex;
using ::testing::Not;
using ::testing::UnorderedElementsAre;
using ::testing::UnorderedElementsAreArray;

class OpenApi : public RunningServer {
 protected:
  json document() {
    const HttpResponse response = ask(get_request("/openapi.json"));
    EXPECT_EQ(response.status, 200);
    EXPECT_EQ(response.header("content-type"), "application/json");
    return json::parse(response.body);
  }

  // A path of the document, with the epoch that is served.
  std::string target(std::string path) const {
    const size_t at = path.find("{epoch}");
    if (at != std::string::npos) path.replace(at, 7, database_.epoch);
    return path;
  }

  std::string upper(std::string text) const {
    for (char& c : text) c = static_cast<char>(std::toupper(c));
    return text;
  }

  HttpResponse ask_method(const std::string& method, const std::string& path,
                          const std::string& headers = "") {
    LoopbackClient client(url());
    client.send(get_request(target(path), headers, method));
    return client.receive(method == "HEAD");
  }

  // A string or an integer, as the schema of a manifest's member limits it.
  void expect_allowed(const json& schema, const json& value) {
    if (schema.contains("enum")) {
      EXPECT_THAT(schema.at("enum"), Contains(value));
    }
    if (schema.contains("pattern")) {
      EXPECT_THAT(value.get<std::string>(), MatchesRegex(schema.at("pattern").get<std::string>()));
    }
    if (schema.value("type", "") == "integer") {
      ASSERT_TRUE(value.is_number_integer()) << value;
      EXPECT_GE(value, schema.value("minimum", value));
      EXPECT_LE(value, schema.value("maximum", value));
      if (schema.contains("multipleOf")) {
        EXPECT_EQ(value.get<int64_t>() % schema.at("multipleOf").get<int64_t>(), 0) << value;
      }
    }
  }

  // Every $ref leads somewhere within the document.
  void expect_references(const json& document, const json& at) {
    if (at.is_array()) {
      for (const json& part : at) expect_references(document, part);
    }
    if (!at.is_object()) return;
    if (at.contains("$ref")) {
      const std::string reference = at.at("$ref");
      ASSERT_EQ(reference.substr(0, 2), "#/");
      EXPECT_TRUE(document.contains(json::json_pointer(reference.substr(1)))) << reference;
    }
    for (const auto& [name, part] : at.items()) expect_references(document, part);
  }
};

TEST_F(OpenApi, IsADocument) {
  start();
  const json all = document();
  EXPECT_EQ(all.at("openapi"), "3.1.0");
  EXPECT_TRUE(all.at("info").contains("title"));
  EXPECT_TRUE(all.at("info").contains("version"));
  expect_references(all, all);
  std::set<std::string> ids;
  for (const auto& [path, operations] : all.at("paths").items()) {
    for (const auto& [method, operation] : operations.items()) {
      EXPECT_TRUE(ids.insert(operation.at("operationId")).second) << path;
      EXPECT_FALSE(operation.at("responses").empty()) << path;
      // Each part of a path in braces is explained.
      const bool names_epoch = operation.value("parameters", json::array())
                                   .dump()
                                   .find("#/components/parameters/epoch") != std::string::npos;
      EXPECT_EQ(names_epoch, path.find("{epoch}") != std::string::npos) << path;
    }
  }
}

TEST_F(OpenApi, NamesTheRoutesOfTheServer) {
  start();
  std::vector<std::string> paths;
  const json all = document();
  for (const auto& [path, operations] : all.at("paths").items()) paths.push_back(path);
  EXPECT_THAT(paths, UnorderedElementsAre("/v1/database", "/v1/epochs/{epoch}/shards",
                                          "/v1/epochs/{epoch}/hint", "/v1/epochs/{epoch}/queries",
                                          "/health/live", "/health/ready", "/openapi.json"));
  for (const auto& [path, operations] : all.at("paths").items()) {
    std::string allowed;
    for (const auto& [method, operation] : operations.items()) {
      const HttpResponse response = ask_method(upper(method), path);
      EXPECT_NE(response.status, 404) << method << " " << path;
      EXPECT_NE(response.status, 405) << method << " " << path;
      EXPECT_NE(response.status, 501) << method << " " << path;
      EXPECT_TRUE(operation.at("responses").contains(std::to_string(response.status)))
          << method << " " << path << " answers " << response.status;
      allowed += (allowed.empty() ? "" : ", ") + upper(method);
    }
    for (const char* method :
         {"get", "head", "post", "put", "delete", "patch", "options", "trace"}) {
      if (operations.contains(method)) continue;
      const HttpResponse response = ask_method(upper(method), path);
      EXPECT_EQ(response.status, 405) << method << " " << path;
      EXPECT_EQ(response.header("allow"), allowed) << path;
    }
  }
}

TEST_F(OpenApi, ForeseesWhatIsAnswered) {
  start();
  const json paths = document().at("paths");
  const auto expect_foreseen = [&](const std::string& path, const std::string& method,
                                   const HttpResponse& response) {
    const json& responses = paths.at(path).at(method).at("responses");
    const std::string status = std::to_string(response.status);
    ASSERT_TRUE(responses.contains(status)) << method << " " << path << " " << status;
    if (response.body.empty()) return;
    const json& content = responses.at(status).at("content");
    const std::string type = response.header("content-type");
    EXPECT_TRUE(content.contains(type) || content.contains(type.substr(0, type.find(';'))))
        << path << " " << status << " " << type;
  };
  const std::string query = queries(1);
  const std::string route_of_queries = "/v1/epochs/{epoch}/queries";
  const std::string binary = "application/octet-stream";
  for (const std::string& request :
       {binary_request(query), json_request("{\"queries\":[\"" + base64_of(query) + "\"]}"),
        binary_request("x"), json_request("x"), post_request(queries_path(), "text/plain", "x"),
        post_head(queries_path(), binary, "99999999"), get_request(queries_path(), "", "POST"),
        post_request(old_path("/queries"), binary, "x"),
        post_request("/v1/epochs/x/queries", binary, "x")}) {
    expect_foreseen(route_of_queries, "post", ask(request));
  }
  control_->fail(true);
  expect_foreseen(route_of_queries, "post", ask(binary_request(query)));
  for (const std::string route : {"/shards", "/hint"}) {
    const std::string path = "/v1/epochs/{epoch}" + route;
    for (const std::string& request :
         {get_request(epoch_path(route)), get_request(epoch_path(route), "Range: bytes=1-2\r\n"),
          get_request(epoch_path(route), "Range: bytes=99999999-\r\n"),
          get_request(old_path(route)), get_request("/v1/epochs/x" + route),
          get_request(epoch_path(route) + "?a?b")}) {
      expect_foreseen(path, "get", ask(request));
    }
    LoopbackClient client(url());
    client.send(get_request(epoch_path(route), "If-None-Match: *\r\n"));
    expect_foreseen(path, "get", client.receive());
  }
}

TEST_F(OpenApi, HasTheSizesOfTheDatabase) {
  ServerOptions options = default_options();
  options.api.queries_per_request_max = 2;
  start(options);
  const json all = document();
  const json& schemas = all.at("components").at("schemas");
  const json& binary = schemas.at("BinaryQueries");
  EXPECT_EQ(binary.at("minLength"), kQueryBytes);
  EXPECT_EQ(binary.at("maxLength"), 2 * kQueryBytes);
  const json& query_list = schemas.at("Queries").at("properties").at("queries");
  const json& response_list = schemas.at("Responses").at("properties").at("responses");
  EXPECT_EQ(query_list.at("maxItems"), 2);
  EXPECT_EQ(response_list.at("maxItems"), 2);
  for (const auto& [items, bytes] : {std::pair(query_list.at("items"), kQueryBytes),
                                     {response_list.at("items"), kResponseBytes}}) {
    EXPECT_EQ(items.at("minLength"), (bytes + 2) / 3 * 4);
    EXPECT_EQ(items.at("maxLength"), (bytes + 2) / 3 * 4);
    // What the server really says, and takes, is such a string; others are not.
    const auto pattern = items.at("pattern").get<std::string>();
    for (uint64_t seed = 0; seed < 20; ++seed) {
      const std::string text =
          base64_of(bytes == kQueryBytes ? queries(1, seed) : responses(1, seed));
      EXPECT_THAT(text, MatchesRegex(pattern));
      EXPECT_THAT(text + "=", Not(MatchesRegex(pattern)));
    }
  }
  EXPECT_EQ(all.at("components").at("parameters").at("epoch").at("example"), database_.epoch);
  LoadedDatabase next = tiny_database();
  next.epoch = EpochId(64, 'e');
  serve_next(std::move(next));
  EXPECT_EQ(document().at("components").at("parameters").at("epoch").at("example"),
            std::string(64, 'e'));
}

TEST_F(OpenApi, RequiresWhatManifestsHave) {
  start();
  const json manifest = json::parse(ask(get_request("/v1/database")).body);
  std::vector<std::string> members;
  for (const auto& [name, value] : manifest.items()) members.push_back(name);
  const json all = document();
  const json& schema = all.at("components").at("schemas").at("Manifest");
  EXPECT_THAT(schema.at("required").get<std::vector<std::string>>(),
              UnorderedElementsAreArray(members));
  for (const std::string& name : members) EXPECT_TRUE(schema.at("properties").contains(name));
  for (const char* method : {"get", "head"}) {
    EXPECT_EQ(hint_parameters(all, method), std::vector<std::string>{"shards"}) << method;
  }
}

// Manifests of every kind of database, which the vectors' own generator wrote. Those with members
// that no client knows are not what a server sends.
TEST_F(OpenApi, AllowsManifestsOfEveryKind) {
  start();
  const json all = document();
  const json& schema = all.at("components").at("schemas").at("Manifest");
  std::set<std::string> formats;
  const json examples = vectors::read_vectors("manifest.json");
  for (const json& example : examples.at("valid")) {
    const auto name = example.at("name").get<std::string>();
    if (name.starts_with("unknown-")) continue;
    SCOPED_TRACE(name);
    const json manifest = json::parse(example.at("text").get<std::string>());
    formats.insert(manifest.at("format"));
    for (const json& member : schema.at("required"))
      EXPECT_TRUE(manifest.contains(member)) << member;
    for (const auto& [member, value] : manifest.items()) {
      ASSERT_TRUE(schema.at("properties").contains(member)) << member;
      expect_allowed(schema.at("properties").at(member), value);
    }
  }
  EXPECT_THAT(formats, UnorderedElementsAre("blindfuse/1", "blindfuse/2", "blindfuse/3"));
}

TEST_F(OpenApi, SaysWhereAKeyIsNeeded) {
  start();
  const json open = document();
  for (const auto& [path, operations] : open.at("paths").items()) {
    for (const auto& [method, operation] : operations.items()) {
      if (!operation.contains("security")) continue;
      EXPECT_TRUE(operation.at("security").at(0).empty()) << path << " is open to all";
    }
  }
  start(with_keys());
  const json all = document();
  for (const auto& [path, operations] : all.at("paths").items()) {
    for (const auto& [method, operation] : operations.items()) {
      const bool needed = operation.contains("security");
      EXPECT_EQ(ask_method(upper(method), path).status == 401, needed) << method << " " << path;
      EXPECT_EQ(operation.value("security", json()),
                needed ? json::parse(R"([{"apiKey":[]}])") : json());
      EXPECT_NE(ask_method(upper(method), path, kKey).status, 401);
    }
  }
  EXPECT_EQ(all.at("components").at("securitySchemes").at("apiKey").at("scheme"), "bearer");
}

}  // namespace
}  // namespace blindfuse::server_testing
