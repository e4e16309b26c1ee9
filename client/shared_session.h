// A session that any number of threads use at once. One of them has its turn, and includes the keys
// for which the others wait.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "client/secret.h"
#include "client/session.h"
#include "src/system/process_token.h"

namespace blindfuse {

// Makes the transport of a session. The given function says whether to wait on.
using TransportMaker = std::function<std::unique_ptr<Transport>(std::function<bool()>)>;

enum class KeyForm {
  kAny,     // a key in the form that this database has
  kNumber,  // of an entry in an index database, in decimal digits; no key of a keyword database
};

class SharedSession {
 public:
  SharedSession(const TransportMaker& make_transport, const std::string& address,
                ClientOptions options, std::stop_token stop);

  // Runs `work` with exclusive use of the session. Throws CancelledError if the call is stopped
  // before it or meanwhile.
  template <class Work>
  auto run(const std::stop_token& stop, Work work) {
    const Turn turn(*this, stop);
    return work(*session_);
  }

  // Keys of several calls that wait at the same time are asked for together, as many as fit a
  // request (Session::keys_per_request()). An invalid key is the error of its own call alone, and
  // so is an exception of the progress callback on its thread. Any other error is that of all
  // calls. If the thread that asks for all of them is stopped, the others ask again.
  //
  // Takes the keys, as another thread may ask for those of a call that was stopped.
  std::vector<Answer> look_up(KeyCopies keys, KeyForm form, const std::stop_token& stop);

  // False after a fork, in the child. Takes no locks.
  bool is_of_this_process() const;

  // The number after the last call that ended.
  size_t prepared_count() const { return prepared_count_; }

  // Both belong to the last call that ended.
  SignerStatus signer() const;
  TransferStats transfers() const;

  // The number of calls of look_up() that wait for another thread's turn to end.
  size_t waiting_count() const;

 private:
  // A call of look_up(), and its result.
  struct Asked {
    KeyCopies keys;
    KeyForm form;
    bool is_done = false;
    bool is_abandoned = false;  // its thread was told to stop while another thread asked for it
    std::vector<Answer> answers = {};
    std::exception_ptr error = nullptr;
  };
  using Calls = std::list<std::shared_ptr<Asked>>;

  // The session for the calling thread alone, until the turn ends.
  class Turn {
   public:
    Turn(SharedSession& shared, const std::stop_token& stop);
    // Takes over a session that was taken already, under the lock.
    explicit Turn(SharedSession& shared) : shared_(shared), call_(shared.session_->deadline()) {}
    ~Turn();
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

   private:
    SharedSession& shared_;
    std::optional<Deadline::Call> call_;  // all of the turn is one
  };

  bool go_on(const ClientProgress& progress);
  void check_process() const;
  void take(const std::stop_token& stop);
  Calls take_waiting();
  void answer(const std::shared_ptr<Asked>& mine);
  void ask_for(const Calls& calls);
  void put_back(Calls calls, const std::shared_ptr<Asked>& mine, std::exception_ptr why);

  const ProcessToken maker_ = ProcessToken::current();
  const ProgressCallback progress_;
  std::stop_token stop_;         // of the thread whose turn it is
  bool callback_threw_ = false;  // in this turn
  std::optional<Session> session_;
  std::atomic<size_t> prepared_count_ = 0;

  mutable std::mutex mutex_;
  std::shared_ptr<const SignerStatus> signer_;
  TransferStats transfers_;
  std::condition_variable_any changed_;
  bool is_taken_ = false;
  Calls waiting_;
};

}  // namespace blindfuse
