#include "client/shared_session.h"

#include <algorithm>
#include <utility>

namespace blindfuse {

SharedSession::Turn::Turn(SharedSession& shared, const std::stop_token& stop) : shared_(shared) {
  shared_.check_process();
  std::unique_lock lock(shared_.mutex_);
  const bool is_free = shared_.changed_.wait(lock, stop, [&] { return !shared_.is_taken_; });
  if (!is_free || stop.stop_requested()) throw CancelledError();
  shared_.take(stop);
  call_.emplace(shared_.session_->deadline());
}

SharedSession::Turn::~Turn() {
  call_.reset();
  shared_.prepared_count_ = shared_.session_->prepared_count();
  {
    const std::lock_guard lock(shared_.mutex_);
    shared_.signer_ = shared_.session_->signer();
    shared_.transfers_ = shared_.session_->transfers();
    shared_.is_taken_ = false;
    shared_.stop_ = {};
  }
  shared_.changed_.notify_all();
}

SharedSession::SharedSession(const TransportMaker& make_transport, const std::string& address,
                             ClientOptions options, std::stop_token stop)
    : progress_(std::move(options.progress)), stop_(std::move(stop)) {
  options.progress = [this](const ClientProgress& progress) { return go_on(progress); };
  const auto keep_waiting = [this] { return go_on({ClientStage::kWaitingForAnswer}); };
  session_.emplace(make_transport(keep_waiting), address, std::move(options));
  signer_ = session_->signer();
  transfers_ = session_->transfers();
  stop_ = {};
}

bool SharedSession::go_on(const ClientProgress& progress) {
  if (stop_.stop_requested()) return false;
  if (!progress_) return true;
  try {
    const bool is_to_go_on = progress_(progress);
    check_process();  // the callback may have forked, and the child has a call of its parent
    return is_to_go_on;
  } catch (...) {
    callback_threw_ = true;
    throw;
  }
}

SignerStatus SharedSession::signer() const {
  check_process();
  const std::lock_guard lock(mutex_);
  return *signer_;
}

TransferStats SharedSession::transfers() const {
  check_process();
  const std::lock_guard lock(mutex_);
  return transfers_;
}

size_t SharedSession::waiting_count() const {
  check_process();
  const std::lock_guard lock(mutex_);
  return waiting_.size();
}

bool SharedSession::is_of_this_process() const { return maker_.is_current(); }

void SharedSession::check_process() const {
  if (is_of_this_process()) return;
  throw InputError("a client made before fork() is not for the child process: connect again there");
}

void SharedSession::take(const std::stop_token& stop) {
  is_taken_ = true;
  callback_threw_ = false;
  stop_ = stop;
}

std::vector<Answer> SharedSession::look_up(KeyCopies keys, KeyForm form,
                                           const std::stop_token& stop) {
  check_process();
  const auto mine = std::make_shared<Asked>(Asked{.keys = std::move(keys), .form = form});
  std::unique_lock lock(mutex_);
  waiting_.push_back(mine);
  for (;;) {
    changed_.wait(lock, stop, [&] { return mine->is_done || !is_taken_; });
    if (mine->is_done) break;
    if (stop.stop_requested()) {
      mine->is_abandoned = true;
      std::erase(waiting_, mine);
      throw CancelledError();
    }
    take(stop);
    lock.unlock();
    {
      const Turn turn(*this);
      answer(mine);
    }
    lock.lock();
  }
  if (mine->error) std::rethrow_exception(mine->error);
  return std::move(mine->answers);
}

SharedSession::Calls SharedSession::take_waiting() {
  const size_t keys_max = session_->keys_per_request();
  const std::lock_guard lock(mutex_);
  size_t count = 0;
  auto end = waiting_.begin();
  for (; end != waiting_.end(); ++end) {
    count += (*end)->keys.span().size();
    if (end != waiting_.begin() && count > keys_max) break;
  }
  Calls calls;
  calls.splice(calls.end(), waiting_, waiting_.begin(), end);
  return calls;
}

void SharedSession::answer(const std::shared_ptr<Asked>& mine) {
  Calls calls = take_waiting();
  std::exception_ptr error;
  bool is_of_this_thread = false;
  try {
    ask_for(calls);
  } catch (const CancelledError&) {
    error = std::current_exception();
    is_of_this_thread = true;
  } catch (...) {
    error = std::current_exception();
    is_of_this_thread = callback_threw_;
  }
  if (is_of_this_thread) return put_back(std::move(calls), mine, error);
  const std::lock_guard lock(mutex_);
  for (const std::shared_ptr<Asked>& call : calls) {
    if (error && !call->error) call->error = error;
    call->is_done = true;
  }
}

void SharedSession::ask_for(const Calls& calls) {
  const DatabaseDescription& database = session_->database();
  const bool is_keyword = database.layout().kind == DatabaseKind::kKeyword;
  Calls good;
  size_t count = 0;
  for (const std::shared_ptr<Asked>& call : calls) {
    try {
      if (call->form == KeyForm::kNumber && is_keyword) {
        throw InputError("this database is asked by key, not by number");
      }
      for (const std::string& key : call->keys.span()) database.check(key);
      count += call->keys.span().size();
      good.push_back(call);
    } catch (const InputError&) {
      call->error = std::current_exception();
    }
  }
  SecretBuffer<std::string_view> keys(count);
  auto next_key = keys.span().begin();
  for (const std::shared_ptr<Asked>& call : good) {
    next_key = std::ranges::copy(call->keys.span(), next_key).out;
  }
  std::vector<Answer> answers = session_->look_up(std::as_const(keys).span());
  auto next = std::make_move_iterator(answers.begin());
  for (const std::shared_ptr<Asked>& call : good) {
    const auto end = next + static_cast<ptrdiff_t>(call->keys.span().size());
    call->answers.assign(next, end);
    next = end;
  }
}

// This thread gives up; the next one asks for the keys that it took along.
void SharedSession::put_back(Calls calls, const std::shared_ptr<Asked>& mine,
                             std::exception_ptr why) {
  const std::lock_guard lock(mutex_);
  std::erase_if(calls, [&](const auto& call) { return call == mine || call->is_abandoned; });
  for (const std::shared_ptr<Asked>& call : calls) call->error = nullptr;
  std::erase(waiting_, mine);
  waiting_.splice(waiting_.begin(), calls);
  mine->error = std::move(why);
  mine->is_done = true;
}

}  // namespace blindfuse
