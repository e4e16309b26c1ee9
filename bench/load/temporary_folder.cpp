#include "bench/load/temporary_folder.h"

// Before Asio, whose version 1.74 uses std::exchange without it.
#include <utility>

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <csignal>
#include <cstdlib>
#include <thread>

#include "src/base/errors.h"

namespace blindfuse::load {

struct TemporaryFolder::Signals {
  boost::asio::io_context io;
  boost::asio::signal_set set{io, SIGINT, SIGTERM};
  std::thread thread;
};

TemporaryFolder::TemporaryFolder() : signals_(std::make_unique<Signals>()) {
  const std::filesystem::path parent = std::filesystem::temp_directory_path();
  std::string name = parent / "blindfuse-load-XXXXXX";
  if (mkdtemp(name.data()) == nullptr) {
    throw InputError("cannot make a folder in " + parent.string() +
                     "; name one for the hints with --cache");
  }
  path_ = name;
  signals_->set.async_wait([this](const boost::system::error_code& error, int number) {
    if (error) return;
    remove();
    std::signal(number, SIG_DFL);
    std::raise(number);
  });
  signals_->thread = std::thread([this] { signals_->io.run(); });
}

TemporaryFolder::~TemporaryFolder() {
  signals_->io.stop();
  signals_->thread.join();
  remove();
}

void TemporaryFolder::remove() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace blindfuse::load
