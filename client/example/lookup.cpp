// Looks up the keys of its command line, and shows how far it is and what went wrong. Interrupting
// it (Ctrl-C) ends the look-up, not the program.
#include <blindfuse/client.h>

#include <csignal>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

namespace {

// Blocked in every thread, and waited for in one of its own, which may then do anything.
sigset_t interrupts() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  return signals;
}

void stop_when_interrupted(std::stop_source stop) {
  const sigset_t signals = interrupts();
  int signal = 0;
  sigwait(&signals, &signal);
  stop.request_stop();
}

bool show(const blindfuse::ClientProgress& progress) {
  if (progress.stage == blindfuse::ClientStage::kFetchingHints) {
    std::fprintf(stderr, "\rfetching hints: %llu of %llu bytes%s",
                 static_cast<unsigned long long>(progress.done),
                 static_cast<unsigned long long>(progress.total),
                 progress.done == progress.total ? "\n" : "");
  }
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: lookup URL KEY...\n");
    return 2;
  }
  const sigset_t signals = interrupts();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  std::stop_source stop;
  std::thread(stop_when_interrupted, stop).detach();

  blindfuse::ClientOptions options;
  options.progress = show;
  try {
    auto client = blindfuse::Client::connect(argv[1], options, stop.get_token());
    const blindfuse::DatabaseInfo database = client.database(stop.get_token());
    std::fprintf(stderr, "%llu keys, %llu bytes up and %llu down a look-up\n",
                 static_cast<unsigned long long>(database.key_count),
                 static_cast<unsigned long long>(database.query_bytes),
                 static_cast<unsigned long long>(database.response_bytes));
    const std::vector<std::string> keys(argv + 2, argv + argc);
    const auto values = client.get_many(keys, stop.get_token());
    for (size_t i = 0; i < keys.size(); ++i) {
      std::printf("%s: %s\n", keys[i].c_str(), values[i] ? values[i]->c_str() : "(not there)");
    }
    return 0;
  } catch (const blindfuse::CancelledError&) {
    std::fprintf(stderr, "stopped\n");
  } catch (const blindfuse::ConnectionError& error) {
    std::fprintf(stderr, "no server: %s\n", error.what());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
  }
  return 1;
}
