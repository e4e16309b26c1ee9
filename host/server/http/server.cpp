#include "host/server/http/server.h"

#include <utility>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cerrno>
#include <cstring>
#include <future>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "host/server/http/connection.h"
#include "src/base/errors.h"
#include "src/program/log.h"
#include "src/system/threads.h"

namespace blindfuse::http {
namespace {

namespace asio = boost::asio;
using Descriptor = asio::posix::stream_descriptor;

std::string url_of(const ListeningSocket& listener, bool tls) {
  const std::string address = format_listen_address(listener.address());
  if (listener.address().is_unix()) return address;
  return (tls ? "https://" : "http://") + address;
}

const Options& checked(const Options& options) {
  if (options.threads < 1) throw UsageError("a server has at least one HTTP thread");
  return options;
}

}  // namespace

class Server::Loop {
 public:
  Loop(Handler& handler, ListeningSocket socket, const Options& options,
       std::shared_ptr<const TlsCertificate> tls)
      : context_{handler, checked(options)},
        tls_(std::move(tls)),
        listener_(std::move(socket)),
        url_(url_of(listener_, tls_ != nullptr)) {
    listener_.listen();
    waiter_.assign(listener_.fd());
    asio::co_spawn(
        accepting_, [this] { return accept_clients(); }, asio::detached);
    try {
      for (unsigned i = 0; i < options.threads; ++i) {
        threads_.emplace_back([this] { run(); });
      }
    } catch (const std::system_error& error) {
      stop();
      fail_starting(std::to_string(options.threads) + " HTTP threads", error);
    }
  }
  ~Loop() { stop(); }
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  const std::string& url() const { return url_; }

  size_t end_responses_of(const void* memory) {
    const size_t count = context_.connections.end_senders_of(memory);
    context_.note_cut(Cut::kLentMemory, count);
    return count;
  }
  Load load() const { return context_.load(); }

  void stop() {
    const std::lock_guard lock(stop_mutex_);
    if (std::exchange(stopped_, true)) return;
    context_.stopping = true;
    if (!threads_.empty()) {
      std::promise<void> closed;
      asio::post(accepting_, [&] {
        try {
          close();
        } catch (const std::exception& error) {
          log_error("the server does not stop as it should: {}", error.what());
        }
        closed.set_value();
      });
      closed.get_future().wait();
      context_.connections.wait_until_empty();
    }
    work_.reset();
    io_.stop();
    for (std::thread& thread : threads_) thread.join();
  }

 private:
  // An exception of one handler does not end the others.
  void run() {
    for (;;) {
      try {
        io_.run();
        return;
      } catch (const std::exception& error) {
        log_error("an HTTP thread goes on after a failure: {}", error.what());
      }
    }
  }

  asio::awaitable<void> accept_clients() {
    while (!context_.stopping) {
      boost::system::error_code error;
      co_await waiter_.async_wait(Descriptor::wait_read,
                                  asio::redirect_error(asio::use_awaitable, error));
      if (context_.stopping) co_return;
      if (accept_waiting_clients()) continue;
      // Too few descriptors or too little memory: some may be free in a moment.
      pause_.expires_after(std::chrono::milliseconds(10));
      co_await pause_.async_wait(asio::redirect_error(asio::use_awaitable, error));
    }
  }

  // False when the system has no room for one of them, and no connection could be closed for it.
  bool accept_waiting_clients() try {
    // The loop has an end: clients that are connected already wait meanwhile.
    for (int i = 0; i < 256; ++i) {
      ListeningSocket::Client client = listener_.accept();
      if (!client.socket.is_open()) {
        // A failure with one client is not a reason to refuse the next.
        if (errno == EINTR || errno == ECONNABORTED || errno == EPROTO) continue;
        if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
          const char* why = std::strerror(errno);
          if (const auto count = refused_.count()) {
            log_warning("cannot accept a client: {} ({} times since the last such message)", why,
                        *count);
          }
          end_oldest();
          return false;
        }
        return true;
      }
      auto channel = tls_ ? tls_->make_channel(std::move(client.socket))
                          : make_plain_channel(std::move(client.socket));
      // The connection that has waited longest without a byte goes; when no connection waits, the
      // newcomer does.
      if (context_.connections.count() >= context_.options.connections_max && !end_oldest()) {
        continue;
      }
      Connection::spawn(std::make_shared<Connection>(asio::make_strand(io_), std::move(channel),
                                                     std::move(client.peer), context_));
    }
    return true;
  } catch (const std::exception& error) {
    // Memory is too short; the next clients are accepted in a moment.
    log_error("a client's connection cannot be accepted: {}", error.what());
    return false;
  }

  bool end_oldest() {
    const bool has_ended = context_.connections.end_oldest();
    if (has_ended) context_.note_cut(Cut::kConnections);
    return has_ended;
  }

  // Clients that have connected are still served, connections that wait for nothing are closed, and
  // no client is waited for without end.
  void close() {
    accept_waiting_clients();
    waiter_.release();
    listener_.close();
    pause_.cancel();
    context_.connections.tell_all(Connections::Notice::kStopping);
    drain_.expires_after(context_.options.timeouts.drain);
    drain_.async_wait([this](const boost::system::error_code& error) {
      if (!error) context_.connections.tell_all(Connections::Notice::kEnd);
    });
  }

  asio::io_context io_;
  asio::executor_work_guard<asio::io_context::executor_type> work_ = asio::make_work_guard(io_);
  const asio::strand<asio::io_context::executor_type> accepting_ = asio::make_strand(io_);
  Context context_;
  const std::shared_ptr<const TlsCertificate> tls_;
  ListeningSocket listener_;
  const std::string url_;
  Descriptor waiter_{accepting_};  // the listener's, for waiting
  asio::steady_timer pause_{accepting_};
  LogLimit refused_;
  asio::steady_timer drain_{accepting_};
  std::mutex stop_mutex_;
  bool stopped_ = false;
  std::vector<std::thread> threads_;
};

Server::Server(Handler& handler, ListeningSocket socket, const Options& options,
               std::shared_ptr<const TlsCertificate> tls)
    : loop_(std::make_unique<Loop>(handler, std::move(socket), options, std::move(tls))) {}

Server::~Server() = default;

const std::string& Server::url() const { return loop_->url(); }

size_t Server::end_responses_of(const void* memory) { return loop_->end_responses_of(memory); }

Load Server::load() const { return loop_->load(); }

void Server::stop() { loop_->stop(); }

}  // namespace blindfuse::http
