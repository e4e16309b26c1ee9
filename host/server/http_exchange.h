// From the bytes of a connection to answered requests.
//
// cpp-httplib turns bytes into requests and responses into bytes. Sockets, threads and deadlines
// are not its business here: as packaged (0.11.4) it keeps a thread for every idle connection,
// forgets what a client sends ahead, cannot close after refusing a body that it has not read, and
// stops listening for good when one accept() fails.
#pragma once

#include <httplib.h>

#include <atomic>
#include <optional>
#include <string>

#include "host/server/connection.h"
#include "host/server/problem.h"
#include "host/server/query_route.h"
#include "host/server/router.h"
#include "host/server/serving_epoch.h"

namespace blindfuse {

struct ExchangeLimits {
  uint64_t queries_per_request_max = 16;
  unsigned requests_per_connection_max = 100;
  std::chrono::seconds idle{5};  // as told to clients
};

// One thread at a time; a server has one for each of its threads.
class HttpExchange final : private httplib::Server {
 public:
  // `stopping` is set once the server is: every response is the last of its connection then.
  HttpExchange(const ServedEpochs& epochs, const ExchangeLimits& limits,
               const std::atomic<bool>& stopping);

  enum class Outcome {
    kWait,    // nothing to do until bytes arrive
    kClose,   // all is said
    kLinger,  // a response has been sent, but the client may still be sending
  };

  // Answers what the client has sent.
  Outcome serve(Connection& connection);

 private:
  void install_handlers();
  bool answer_request(Connection& connection, const RequestHead& head);
  bool answer_without_body(const httplib::Request& request, httplib::Response& response);
  void answer_download(const RouteMatch& match, const httplib::Request& request,
                       httplib::Response& response);
  void answer_health(bool ready, httplib::Response& response);
  void check_queries(const httplib::Request& request, const RouteMatch& match);
  void answer_with_body(const httplib::ContentReader& reader, httplib::Response& response);
  std::string read_body(const httplib::ContentReader& reader);
  void finish_header(httplib::Response& response);

  const ServedEpochs& epochs_;
  const ExchangeLimits limits_;
  const std::atomic<bool>& stopping_;

  // Of the request under way.
  Connection* connection_ = nullptr;
  const RequestHead* head_ = nullptr;
  std::optional<QueryRequest> query_;  // its head has been found right
  bool last_ = false;                  // its response is the last of the connection
};

}  // namespace blindfuse
