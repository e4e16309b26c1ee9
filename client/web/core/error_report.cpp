#include "client/web/core/error_report.h"

#include <blindfuse/errors.h>

#include <array>
#include <new>
#include <string>
#include <string_view>
#include <utility>

#include "src/protocol/ed25519.h"

namespace blindfuse::web {
namespace {

using nlohmann::json;

// Cures of the native client, and ours.
constexpr std::array<std::pair<std::string_view, std::string_view>, 12> kCures = {{
    {"name the file of yours with --api-key-file", "give yours to connect() as apiKey"},
    {"fetch all of them again with: blindfuse-client sync --verify URL",
     "fetch all of them again with sync({verify: true})"},
    {"(--hint-bytes-max)", "(connect's hintBytesMax)"},
    {"(--mode)", "(connect's mode)"},
    {"(--server-key)", "(connect's serverKey)"},
    {"(--allow-rollback)", "(connect's allowRollback)"},
    {"(--transfer-bytes-max)", "(connect's transferBytesMax)"},
    {"with --timeout", "with connect's timeoutSeconds"},
    {"make a new client", "connect again, or reload the page"},
    {"make room, or name another folder with --cache", "make room"},
    {"this program knows", "reload the page, or have its site updated; this client knows"},
    {"a newer one may", "reload the page, or have its site updated"},
}};

json report(const char* code, const std::exception& error) {
  return {{"code", code}, {"message", in_our_words(error.what())}};
}

json refusal(const char* code, const ServerError& error) {
  json result = report(code, error);
  result["status"] = error.status();
  return result;
}

}  // namespace

std::string in_our_words(std::string text) {
  for (const auto& [theirs, ours] : kCures) {
    if (const size_t at = text.find(theirs); at != std::string::npos) {
      text.replace(at, theirs.size(), ours);
    }
  }
  return text;
}

json error_report(std::exception_ptr error) {
  try {
    std::rethrow_exception(error);
  } catch (const EpochGoneError& e) {
    return refusal("epoch-gone", e);
  } catch (const ServerBusyError& e) {
    json result = refusal("busy", e);
    if (e.retry_after_s()) result["retryAfterS"] = *e.retry_after_s();
    return result;
  } catch (const ServerError& e) {
    return refusal("server", e);
  } catch (const NotAskedError& e) {
    return report("not-asked", e);
  } catch (const ConnectionError& e) {
    return report("connection", e);
  } catch (const SignatureError& e) {
    return report("signature", e);
  } catch (const ProtocolError& e) {
    return report("protocol", e);
  } catch (const CacheError& e) {
    return report("cache", e);
  } catch (const CancelledError& e) {
    return report("cancelled", e);
  } catch (const CannotVerify& e) {
    return report("resource", e);
  } catch (const InputError& e) {
    return report("input", e);
  } catch (const std::bad_alloc&) {
    return {{"code", "resource"},
            {"message",
             "the browser gives no more memory; close other pages, or ask a database "
             "with a smaller hint"}};
  } catch (const std::exception& e) {
    return report("resource", e);
  }
}

}  // namespace blindfuse::web
