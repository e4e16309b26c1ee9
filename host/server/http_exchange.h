// From the bytes of a connection to answered requests: what is done next for a client, as far as it
// goes without waiting.
#pragma once

#include "host/server/connections/connection.h"
#include "host/server/routes/http_responder.h"
#include "host/server/server_context.h"

namespace blindfuse {

// One thread at a time; a server has one for each of its threads.
class HttpExchange {
 public:
  explicit HttpExchange(const ServerContext& context) : context_(context), responder_(context_) {}
  HttpExchange(const HttpExchange&) = delete;
  HttpExchange& operator=(const HttpExchange&) = delete;

  enum class Outcome {
    kWait,    // nothing to do until something happens
    kAgain,   // more to do, but it is another client's turn
    kClose,   // all is said
    kLinger,  // all is said, but the client may still be sending
  };

  // Takes in what the client has sent, and answers what can be answered.
  Outcome serve(Connection& connection);

 private:
  enum class Step { kOn, kWait, kClose };

  Step read_head(Connection& connection);
  Step read_body(Connection& connection);
  Step await_answer(Connection& connection);
  void begin_request(Connection& connection, RequestHead head);
  void check_request(ActiveRequest& request) const;
  void ask_engine(Connection& connection);
  void refuse(Connection& connection, const Refusal& refusal);
  void respond(Connection& connection);
  void respond_and_end(Connection& connection, const Problem& problem);
  void record(const Connection& connection, int status);

  const ServerContext context_;
  HttpResponder responder_;
};

}  // namespace blindfuse
