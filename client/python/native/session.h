// The object in which Python holds a Client.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <list>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include <blindfuse/client.h>

namespace blindfuse::python {

// Stops a call from another thread.
class Stop {
 public:
  void request();
  const std::stop_source& source() const { return source_; }

 private:
  std::stop_source source_;
};

// A Client that may be closed while others use it. Everything is called with Python's lock held,
// which guards the members, and lets go of it while the library works; except for the destructor,
// not in a process that was forked since. Keys are byte strings, or all of them numbers, which are
// not keys in a keyword database, whatever it was before.
//
// `progress` is called with (stage, done, total), or is None; `stop` may be nullptr.
class Session {
 public:
  static std::unique_ptr<Session> connect(const std::string& url, ClientOptions options,
                                          nanobind::handle progress, const Stop* stop);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // Stops the calls in progress. Afterwards every call throws InputError.
  void close();

  nanobind::object get(nanobind::bytes key, nanobind::handle progress, const Stop* stop);
  nanobind::object get_entry(uint64_t i, nanobind::handle progress, const Stop* stop);
  nanobind::list look_up(const std::vector<nanobind::bytes>& keys, nanobind::handle progress,
                         const Stop* stop);
  nanobind::list look_up_entries(const std::vector<uint64_t>& entries, nanobind::handle progress,
                                 const Stop* stop);
  nanobind::tuple sync(bool verify, nanobind::handle progress, const Stop* stop);
  nanobind::tuple database(nanobind::handle progress, const Stop* stop);
  void prepare(size_t count, nanobind::handle progress, const Stop* stop);
  size_t prepared_count();
  // These two do not wait for the client's turn.
  size_t waiting_count();
  nanobind::tuple signer();

 private:
  explicit Session(Client client);
  template <typename Work>
  auto call(nanobind::handle progress, const Stop* stop, Work&& work);

  std::shared_ptr<Client> client_;       // shared with the calls; empty: closed
  std::list<std::stop_source> running_;  // of the calls
};

}  // namespace blindfuse::python
