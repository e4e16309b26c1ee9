// The extension module blindfuse._blindfuse: the client library, and its errors as Python's.
// blindfuse/_blindfuse.pyi is what Python sees of it.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <exception>
#include <system_error>

#include <blindfuse/client.h>
#include <blindfuse/version.h>

#include "client/python/native/running_call.h"
#include "client/python/native/session.h"
#include "src/system/process_token.h"

namespace blindfuse::python {
namespace nb = nanobind;
using namespace nb::literals;
namespace {

// blindfuse._errors.from_native(kind, message, status, retry_after) makes the exception.
void raise(const char* kind, const char* message, nb::object status = nb::none(),
           nb::object retry_after = nb::none()) {
  // The text may contain a server's words.
  const nb::object text = nb::steal(PyUnicode_DecodeUTF8(
      message, static_cast<Py_ssize_t>(std::char_traits<char>::length(message)), "replace"));
  const nb::object error = nb::module_::import_("blindfuse._errors")
                               .attr("from_native")(kind, text, status, retry_after);
  PyErr_SetObject(error.type().ptr(), error.ptr());
}

// Throws again errors that are not the library's, for nanobind to translate.
void translate(const std::exception_ptr& thrown, void*) {
  try {
    std::rethrow_exception(thrown);
  } catch (const SignatureError& error) {
    raise("signature", error.what());
  } catch (const ProtocolError& error) {
    raise("protocol", error.what());
  } catch (const CacheError& error) {
    raise("cache", error.what());
  } catch (const InputError& error) {
    raise("input", error.what());
  } catch (const ConnectionError& error) {
    raise("connection", error.what());
  } catch (const ServerBusyError& error) {
    const auto after = error.retry_after_s();
    raise("busy", error.what(), nb::int_(error.status()),
          after ? nb::object(nb::int_(*after)) : nb::object(nb::none()));
  } catch (const ServerError& error) {
    raise("server", error.what(), nb::int_(error.status()));
  } catch (const NotAskedError& error) {
    raise("not-asked", error.what());
  } catch (const ResourceError& error) {
    raise("resource", error.what());
  } catch (const CancelledError& error) {
    raise("cancelled", error.what());
  } catch (const std::system_error& error) {
    raise("resource", error.what());
  }
}

[[noreturn]] nb::object refuse_to_pickle(nb::handle self) {
  PyErr_Format(PyExc_TypeError,
               "a %.100s cannot be pickled or copied: it holds secrets of queries; connect again "
               "where you need one",
               nb::type_name(self.type()).c_str());
  nb::raise_python_error();
}

std::unique_ptr<Session> connect(const std::string& url, const std::string& cache, unsigned threads,
                                 size_t prepare, int64_t timeout_s, const std::string& ca_file,
                                 const std::string& api_key, const std::string& proxy,
                                 const std::string& mode, uint64_t hint_bytes_max,
                                 uint64_t transfer_bytes_max, uint64_t hint_memory_bytes_max,
                                 const std::string& server_key, bool allow_rollback,
                                 nb::handle progress, const Stop* stop) {
  ClientOptions options;
  options.cache_folder = cache;
  options.thread_count = threads;
  options.prepare_batch = prepare;
  options.http.timeout = std::chrono::seconds(timeout_s);
  // The package says "" for what was not given, and refuses it where it was.
  const auto given = [](const std::string& text) {
    return text.empty() ? std::nullopt : std::optional(text);
  };
  options.http.ca_file = given(ca_file);
  options.http.api_key = given(api_key);
  options.http.proxy = given(proxy);
  options.mode = given(mode);
  options.hint_bytes_max = hint_bytes_max;
  options.transfer_bytes_max = transfer_bytes_max;
  options.hint_memory_bytes_max = hint_memory_bytes_max;
  options.server_key = given(server_key);
  options.allow_rollback = allow_rollback;
  return Session::connect(url, std::move(options), progress, stop);
}

}  // namespace

NB_MODULE(_blindfuse, m) {
  m.attr("__version__") = BLINDFUSE_VERSION;
  m.attr("QUERIES_PER_REQUEST") = kQueriesPerRequest;
  nb::register_exception_translator(translate);
  // Daemon threads may still hold objects when the interpreter ends.
  nb::set_leak_warnings(false);

  nb::class_<ProcessToken>(m, "ProcessToken")
      .def_static("current", &ProcessToken::current)
      .def("is_current", &ProcessToken::is_current);

  nb::class_<Stop>(m, "Stop")
      .def(nb::init<>())
      .def("request", &Stop::request)
      .def("__reduce__", refuse_to_pickle);

  nb::class_<Session>(m, "Session")
      .def("close", &Session::close)
      .def("get", &Session::get, "key"_a, "progress"_a.none(), "stop"_a.none())
      .def("get", &Session::get_entry, "key"_a, "progress"_a.none(), "stop"_a.none())
      // The first, for no keys at all: those are right in any database.
      .def("look_up", &Session::look_up, "keys"_a, "progress"_a.none(), "stop"_a.none())
      .def("look_up", &Session::look_up_entries, "keys"_a, "progress"_a.none(), "stop"_a.none())
      .def("sync", &Session::sync, "verify"_a, "progress"_a.none(), "stop"_a.none())
      .def("database", &Session::database, "progress"_a.none(), "stop"_a.none())
      .def("prepare", &Session::prepare, "count"_a, "progress"_a.none(), "stop"_a.none())
      .def("prepared_count", &Session::prepared_count)
      .def("waiting_count", &Session::waiting_count)
      .def("signer", &Session::signer)
      .def("__reduce__", refuse_to_pickle);

  m.def("connect", connect, "url"_a, "cache"_a, "threads"_a, "prepare"_a, "timeout_s"_a,
        "ca_file"_a, "api_key"_a, "proxy"_a, "mode"_a, "hint_bytes_max"_a, "transfer_bytes_max"_a,
        "hint_memory_bytes_max"_a, "server_key"_a, "allow_rollback"_a, "progress"_a.none(),
        "stop"_a.none());
  m.def("note_interpreter_ends", &RunningCall::note_interpreter_ends);
}

}  // namespace blindfuse::python
