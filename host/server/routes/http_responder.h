// From a request that is whole, and its answer, to the bytes of a response.
//
// cpp-httplib does that, in memory. Sockets, threads and deadlines are not its business here: as
// packaged (0.11.4) it keeps a thread for every idle connection and every slow one, forgets what a
// client sends ahead, cannot close after refusing a body that it has not read, and stops listening
// for good when one accept() fails.
#pragma once

#include <httplib.h>

#include <string>

#include "host/server/connections/connection.h"
#include "host/server/server_context.h"

namespace blindfuse {

// One thread at a time.
class HttpResponder final : private httplib::Server {
 public:
  explicit HttpResponder(const ServerContext& context);

  struct Written {
    int status;
    bool last;  // it is the last of its connection
  };
  // Puts the response to the connection's request behind what is to be sent. `last`: nothing more
  // will be answered.
  Written respond(Connection& connection, bool last);

 private:
  class ResponseStream;

  void install_handlers();
  void answer(const httplib::Request& request, httplib::Response& response);
  void answer_download(const httplib::Request& request, httplib::Response& response);
  void answer_health(bool ready, httplib::Response& response) const;
  void answer_metrics(httplib::Response& response) const;
  void answer_openapi(httplib::Response& response);
  void answer_page(const httplib::Request& request, httplib::Response& response);
  void answer_preflight(httplib::Response& response) const;
  bool is_ready() const;
  void finish_header(httplib::Response& response);
  std::string allowed_origin() const;

  const ServerContext& context_;

  // Of the response that is being written.
  ActiveRequest* request_ = nullptr;
  bool last_ = false;
  int status_ = 0;
  std::string accept_encoding_;

  // The description of the epoch that was asked for last.
  std::string openapi_epoch_;
  std::string openapi_text_;
};

}  // namespace blindfuse
