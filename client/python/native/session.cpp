#include "client/python/native/session.h"

#include <nanobind/stl/string.h>

#include <optional>
#include <utility>

#include "client/python/native/running_call.h"

namespace blindfuse::python {
namespace nb = nanobind;
namespace {

nb::object value_object(const std::optional<std::string>& value) {
  if (!value) return nb::none();
  return nb::bytes(value->data(), value->size());
}

nb::list answers_list(const std::vector<Answer>& answers) {
  nb::list list;
  for (const Answer& answer : answers) {
    list.append(nb::make_tuple(value_object(answer.value), answer.query_bytes,
                               answer.response_bytes, answer.prepare_seconds, answer.server_seconds,
                               answer.decode_seconds, answer.total_seconds, answer.request_keys,
                               answer.asked));
  }
  return list;
}

// True if signal handlers run on this thread.
bool is_main_thread() {
  const nb::object main = nb::module_::import_("threading").attr("main_thread")();
  return nb::cast<unsigned long>(main.attr("ident")) == PyThread_get_thread_ident();
}

}  // namespace

void Stop::request() {
  // A request may wake a thread that waits for the lock.
  const WithoutLock unlocked;
  source_.request_stop();
}

std::unique_ptr<Session> Session::connect(const std::string& url, ClientOptions options,
                                          nb::handle progress, const Stop* stop) {
  options.progress = RunningCall::report;
  const std::stop_token token = stop != nullptr ? stop->source().get_token() : std::stop_token();
  std::optional<Client> client;
  run_without_lock(nullptr, progress,
                   [&] { client = Client::connect(url, std::move(options), token); });
  return std::unique_ptr<Session>(new Session(std::move(*client)));
}

Session::Session(Client client) : client_(std::make_shared<Client>(std::move(client))) {}

Session::~Session() {
  const WithoutLock unlocked;
  client_.reset();
}

void Session::close() {
  std::shared_ptr<Client> client = std::move(client_);
  client_.reset();
  std::list<std::stop_source> running = running_;
  const WithoutLock unlocked;
  for (std::stop_source& stop : running) stop.request_stop();
  client.reset();
}

template <typename Work>
auto Session::call(nb::handle progress, const Stop* stop, Work&& work) {
  if (!client_) throw InputError("this client is closed; connect again");
  if (RunningCall::is_within(this)) {
    throw InputError(
        "a progress callback or a signal handler must not use the client that called it;"
        " connect another one");
  }
  // This call may wait for another thread's call, without a report from the library.
  const bool apart = !running_.empty() && is_main_thread();
  const auto source =
      running_.insert(running_.end(), stop != nullptr ? stop->source() : std::stop_source());
  struct Registered {
    std::list<std::stop_source>& all;
    std::list<std::stop_source>::iterator own;
    ~Registered() { all.erase(own); }
  } const registered{running_, source};
  std::optional<decltype(work(*client_, std::stop_token()))> result;
  std::shared_ptr<Client> used = client_;
  const auto run = [&] {
    // The last one to use a closed client destroys it: here, without the lock.
    const std::shared_ptr<Client> client = std::move(used);
    result = work(*client, source->get_token());
  };
  run_without_lock(this, progress, run, apart ? &*source : nullptr);
  return std::move(*result);
}

nb::object Session::get(nb::bytes key, nb::handle progress, const Stop* stop) {
  const std::string_view view(key.c_str(), key.size());
  return value_object(call(progress, stop, [view](Client& client, const std::stop_token& token) {
    return client.get(view, token);
  }));
}

nb::object Session::get_entry(uint64_t i, nb::handle progress, const Stop* stop) {
  return value_object(call(progress, stop, [i](Client& client, const std::stop_token& token) {
    return client.get(i, token);
  }));
}

nb::list Session::look_up(const std::vector<nb::bytes>& keys, nb::handle progress,
                          const Stop* stop) {
  std::vector<std::string> texts;
  texts.reserve(keys.size());
  for (const nb::bytes& key : keys) texts.emplace_back(key.c_str(), key.size());
  return answers_list(call(progress, stop, [&texts](Client& client, const std::stop_token& token) {
    return client.look_up(texts, token);
  }));
}

nb::list Session::look_up_entries(const std::vector<uint64_t>& entries, nb::handle progress,
                                  const Stop* stop) {
  return answers_list(
      call(progress, stop, [&entries](Client& client, const std::stop_token& token) {
        return client.look_up(entries, token);
      }));
}

nb::tuple Session::sync(bool verify, nb::handle progress, const Stop* stop) {
  const SyncResult result =
      call(progress, stop, [verify](Client& client, const std::stop_token& token) {
        return client.sync(verify, token);
      });
  return nb::make_tuple(result.epoch, result.shard_count, result.part_count, result.shards_fetched,
                        result.bytes_fetched, result.hint_bytes, result.seconds);
}

nb::tuple Session::database(nb::handle progress, const Stop* stop) {
  const DatabaseInfo info = call(progress, stop, [](Client& client, const std::stop_token& token) {
    return client.database(token);
  });
  return nb::make_tuple(info.epoch, info.is_index, info.key_count, info.value_bytes_max,
                        info.parameter_set, info.mode, info.row_count, info.shard_count,
                        info.query_bytes, info.response_bytes, info.hint_bytes, info.failure_log2,
                        info.keys_per_request, info.bucket_count);
}

void Session::prepare(size_t count, nb::handle progress, const Stop* stop) {
  call(progress, stop, [count](Client& client, const std::stop_token& token) {
    client.prepare(count, token);
    return true;
  });
}

nb::tuple Session::signer() {
  if (!client_) throw InputError("this client is closed; connect again");
  const SignerStatus status = client_->signer();
  return nb::make_tuple(status.signer, status.sequence, status.time, status.warning);
}

size_t Session::waiting_count() {
  if (!client_) throw InputError("this client is closed; connect again");
  return client_->waiting_count();
}

size_t Session::prepared_count() {
  return call(nb::none(), nullptr,
              [](Client& client, const std::stop_token&) { return client.prepared_count(); });
}

}  // namespace blindfuse::python
