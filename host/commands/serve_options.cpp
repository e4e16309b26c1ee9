#include "host/commands/serve_options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string>
#include <string_view>
#include <thread>

#include "host/commands/layout_options.h"
#include "host/server/routes/page.h"
#include "src/base/errors.h"
#include "src/program/command_line.h"
#include "src/program/help_formatter.h"

namespace blindfuse {
namespace {

constexpr uint64_t kDaySeconds = 86'400;

// Browsers send scheme://host or scheme://host:port, in lower case.
bool is_origin(std::string_view text) {
  const size_t colon = text.find("://");
  if (colon == 0 || colon == std::string_view::npos) return false;
  const std::string_view host = text.substr(colon + 3);
  if (host.empty() || host.front() == ':' || host.back() == ':') return false;
  return host.find_first_of("/?#@*, \t") == std::string_view::npos &&
         std::ranges::none_of(text, [](char c) { return c >= 'A' && c <= 'Z'; });
}

// An origin that no browser sends would allow no page, without a message.
void check_origin(const std::string& origin) {
  if (origin == "*" || is_origin(origin)) return;
  throw UsageError("--cors-origin " + origin +
                   " is not an origin: write scheme://host or scheme://host:port, in lower case "
                   "and without a path or a slash at the end, as in https://example.org; * is all");
}

void check_listeners(const std::string& listen, const std::string& admin_listen) {
  const http::ListenAddress address = http::parse_listen_address(listen);
  const bool is_any_port = !address.is_unix() && address.port == 0;
  if (is_any_port || address != http::parse_listen_address(admin_listen)) return;
  throw UsageError("--listen and --admin-listen are both " + listen +
                   ": give the admin listener another port or socket");
}

// Returns the error, for CLI11, or an empty text.
std::string is_header_name(const std::string& text) {
  const bool is_name = std::ranges::all_of(text, [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '-' ||
           c == '_';
  });
  return is_name ? "" : "'" + text + "' is not the name of a header, such as X-Real-IP";
}

}  // namespace

void ServeOptions::add_to(CLI::App& command) {
  add_config_option(command);
  command.add_option("directory", directory, "Database directory; needed here or in --config");
  command.option_defaults()->group("Addresses");
  command
      .add_option(
          "--listen", listen,
          "Where to listen: HOST:PORT, [ADDRESS]:PORT for IPv6, or unix:PATH. Port 0 is any "
          "free port")
      ->type_name("ADDRESS")
      ->capture_default_str();
  command
      .add_option(
          "--admin-listen", admin_listen,
          "Where to listen for administration: metrics, health, epochs in memory, log level "
          "and draining. An address other than loopback or a UNIX socket gives metrics and "
          "health only")
      ->type_name("ADDRESS");
  add_removed_option(command, "--metrics-listen", "--admin-listen takes its place");
  command
      .add_option(
          "--ready-file", service.ready_file,
          "File that gets the server's URL when the server accepts requests; removed at exit")
      ->type_name("PATH");
  add_engine_options(command);
  add_queue_options(command);
  add_memory_options(command);
  add_access_options(command);
  add_log_options(command);
}

void ServeOptions::add_engine_options(CLI::App& command) {
  command.option_defaults()->group("Engine and epochs");
  command
      .add_option(
          "--engine", engine,
          "Engine: auto, cpu, cpu:KERNEL, cuda, cuda:KERNEL; the last two also with @DEVICE")
      ->type_name("ENGINE")
      ->capture_default_str();
  device_limit.add_to(command);
  command
      .add_option("--threads", thread_count,
                  "Number of engine threads; 0: one for each processor that the process may use, "
                  "within the CPU limit of its control group")
      ->check(CLI::Range(0u, 1024u))
      ->capture_default_str();
  command.option_defaults()->group("Engine and epochs" + std::string(kAdvanced));
  command
      .add_option("--grace-seconds", grace_seconds_,
                  "How long an epoch is still served after a new one has replaced it")
      ->check(CLI::Range(uint64_t{0}, kDaySeconds))
      ->capture_default_str();
  command
      .add_option(
          "--epochs-max", service.reload.epochs_max,
          "Most epochs in memory, including one that is being loaded. Before there would be "
          "more, the oldest is dropped, and downloads of it end")
      ->check(CLI::Range(2u, 1000u))
      ->capture_default_str();
  command
      .add_option("--watch-seconds", watch_seconds_,
                  "How often to look for a new epoch in the directory; 0: on SIGHUP only")
      ->check(CLI::Range(uint64_t{0}, kDaySeconds))
      ->capture_default_str();
}

void ServeOptions::add_queue_options(CLI::App& command) {
  command.option_defaults()->group("Limits" + std::string(kAdvanced));
  command
      .add_option("--batch-max", service.batches.batch_max,
                  "Most queries that the engine answers in one pass over the database")
      ->check(CLI::Range(1u, 4096u))
      ->capture_default_str();
  command
      .add_option("--queue-max", service.batches.queue_max,
                  "Most queries that may wait for the engine; further ones get status 503")
      ->check(CLI::Range(1u, 65'536u))
      ->capture_default_str();
  command
      .add_option(
          "--queries-per-request-max", service.server.api.queries_per_request_max,
          "Most queries in one request; at most --queue-max. Without this option: 16, and 1 where "
          "a query asks for several keys")
      ->check(CLI::Range(1u, 65'536u));
  command
      .add_option("--timeout-ms", timeout_ms_,
                  "How long a query may wait for the engine; then it gets status 503")
      ->check(CLI::Range(uint64_t{1}, kDaySeconds * 1000))
      ->capture_default_str();
  command
      .add_option("--http-threads", http_threads_,
                  "Number of threads for requests; 0: as many as processors, at most 16")
      ->check(CLI::Range(0u, 1024u))
      ->capture_default_str();
  command
      .add_option(
          "--connections-max", service.server.http.connections_max,
          "Most connections. A further one closes the connection that has been silent longest, or "
          "one that sends or reads slowly")
      ->check(CLI::Range(1u, 100'000u))
      ->capture_default_str();
}

void ServeOptions::add_memory_options(CLI::App& command) {
  constexpr uint64_t kMost = uint64_t{1} << 40;
  command
      .add_option(
          "--request-bytes-max", service.server.api.request_bytes_max,
          "Memory for the bodies of requests while they arrive. When it is used up, the body "
          "that has been arriving longest is dropped")
      ->type_name("BYTES")
      ->transform(byte_units())
      ->check(CLI::Range(uint64_t{1}, kMost))
      ->capture_default_str();
  command
      .add_option(
          "--response-bytes-max", service.server.api.response_bytes_max,
          "Memory for responses, from the queue until they are sent. When it is used up, the "
          "client that has not read for longest is disconnected; if there is none, a query "
          "gets status 503")
      ->type_name("BYTES")
      ->transform(byte_units())
      ->check(CLI::Range(uint64_t{1}, kMost))
      ->capture_default_str();
}

void ServeOptions::add_access_options(CLI::App& command) {
  command.option_defaults()->group("Access");
  command
      .add_option("--tls-cert", tls_certificate,
                  "Serve HTTPS with this certificate and its chain, in PEM. Read again on SIGHUP")
      ->type_name("FILE");
  command.add_option("--tls-key", tls_key, "Private key of the certificate, in PEM")
      ->type_name("FILE");
  command
      .add_option("--api-keys", api_keys,
                  "Answer only clients with an API key in this file (see blindfuse api-key). Read "
                  "again on SIGHUP")
      ->type_name("FILE");
  command
      .add_option("--client-queries-per-minute-max", service.batches.client_queries_per_minute_max,
                  "Most queries a minute of one client: of an API key, or without API keys of an "
                  "IPv4 address or the first 64 bits of an IPv6 address. Further ones get status "
                  "429. 0: no limit")
      ->check(CLI::Range(uint64_t{0}, uint64_t{60'000'000}))
      ->capture_default_str();
  command
      .add_option("--client-address-header", service.server.api.client_address_header,
                  "Header in which a reverse proxy sends the address of its client, such as "
                  "X-Real-IP or X-Forwarded-For; the last address counts. Only if no client can "
                  "connect without the proxy")
      ->type_name("NAME")
      ->check(is_header_name);
  command
      .add_option("--cors-origin", service.server.api.cors_origins,
                  "Origin whose pages may send requests, such as https://example.org; * means all. "
                  "May be given several times")
      ->type_name("ORIGIN");
  command.add_flag("--no-page", no_page_, "Do not serve the page for browsers at /");
}

void ServeOptions::add_log_options(CLI::App& command) {
  command.option_defaults()->group("Log");
  add_choice(command, "--log-format", log_format,
             {{"text", LogFormat::kText}, {"json", LogFormat::kJson}},
             "Lines of text, or a JSON object a line (default: text)");
  command.add_option("--log-level", log_level, "Lowest level that is logged")
      ->check(CLI::IsMember(log_level_names()))
      ->capture_default_str();
  command.add_flag("--access-log", service.server.api.access_log,
                   "Log each request: method, route, status, bytes, time, address of the client");
  command.option_defaults()->group("Options");
}

void ServeOptions::resolve() {
  if (directory.empty()) {
    throw UsageError("missing DIRECTORY, the database directory: give it here or in --config");
  }
  if (!admin_listen.empty()) check_listeners(listen, admin_listen);
  for (const std::string& origin : service.server.api.cors_origins) check_origin(origin);
  const auto& queries = service.server.api.queries_per_request_max;
  if (queries && *queries > service.batches.queue_max) {
    throw UsageError("--queries-per-request-max " + std::to_string(*queries) +
                     " is more than --queue-max " + std::to_string(service.batches.queue_max) +
                     ": such a request could never wait");
  }
  if (service.batches.client_queries_per_minute_max > 0 && api_keys.empty() &&
      service.server.api.client_address_header.empty() &&
      http::parse_listen_address(listen).is_unix()) {
    throw UsageError(
        "--client-queries-per-minute-max needs --api-keys or --client-address-header here: the "
        "clients of a UNIX socket have no addresses");
  }
  const unsigned processors = std::max(1u, std::thread::hardware_concurrency());
  service.server.http.threads = http_threads_ > 0 ? http_threads_ : std::clamp(processors, 2u, 16u);
  service.server.api.answer_timeout = std::chrono::milliseconds(timeout_ms_);
  service.server.api.page = no_page_ ? nullptr : Page::built_in();
  service.reload.directory = directory;
  service.reload.grace = std::chrono::seconds(grace_seconds_);
  service.reload.watch_interval = std::chrono::seconds(watch_seconds_);
}

}  // namespace blindfuse
