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

std::vector<Answer> SharedSession::look_up(std::span<const std::string> keys, KeyForm form,
                                           const std::stop_token& stop) {
  check_process();
  const auto mine = std::make_shared<LookUp>(keys, form);
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

SharedSession::LookUps SharedSession::take_waiting() {
  const size_t keys_max = session_->keys_per_request();
  const std::lock_guard lock(mutex_);
  size_t count = 0;
  auto end = waiting_.begin();
  for (; end != waiting_.end(); ++end) {
    count += (*end)->keys.span().size();
    if (end != waiting_.begin() && count > keys_max) break;
  }
  LookUps batch;
  batch.splice(batch.end(), waiting_, waiting_.begin(), end);
  return batch;
}

void SharedSession::answer(const std::shared_ptr<LookUp>& mine) {
  LookUps batch = take_waiting();
  std::exception_ptr error;
  try {
    ask_for(batch);
  } catch (const CancelledError&) {
    put_back(std::move(batch), mine, std::current_exception());
    return;
  } catch (...) {
    error = std::current_exception();
    if (callback_threw_) {
      put_back(std::move(batch), mine, error);
      return;
    }
  }
  const std::lock_guard lock(mutex_);
  for (const std::shared_ptr<LookUp>& look_up : batch) {
    if (error && !look_up->error) look_up->error = error;
    look_up->is_done = true;
  }
}

void SharedSession::check(const LookUp& look_up) {
  const bool is_keyword = session_->database().layout().kind == DatabaseKind::kKeyword;
  if (look_up.form == KeyForm::kNumber && is_keyword) {
    throw InputError("this database is asked by key, not by number");
  }
  session_->check_keys(look_up.keys.span());
}

void SharedSession::ask_for(const LookUps& batch) {
  session_->database();
  LookUps good;
  size_t count = 0;
  for (const std::shared_ptr<LookUp>& look_up : batch) count += look_up->keys.span().size();
  KeyCopies keys(count);
  for (const std::shared_ptr<LookUp>& look_up : batch) {
    try {
      check(*look_up);
    } catch (const InputError&) {
      look_up->error = std::current_exception();
      continue;
    }
    good.push_back(look_up);
    keys.append(look_up->keys.span());
  }
  std::vector<Answer> answers = session_->look_up(keys.span());
  auto next = std::make_move_iterator(answers.begin());
  for (const std::shared_ptr<LookUp>& look_up : good) {
    const auto end = next + static_cast<ptrdiff_t>(look_up->keys.span().size());
    look_up->answers.assign(next, end);
    next = end;
  }
}

// This thread gives up; what it took along is asked for by the next.
void SharedSession::put_back(LookUps batch, const std::shared_ptr<LookUp>& mine,
                             std::exception_ptr why) {
  const std::lock_guard lock(mutex_);
  std::erase_if(batch,
                [&](const auto& look_up) { return look_up == mine || look_up->is_abandoned; });
  for (const std::shared_ptr<LookUp>& look_up : batch) look_up->error = nullptr;
  std::erase(waiting_, mine);
  waiting_.splice(waiting_.begin(), batch);
  mine->error = std::move(why);
  mine->is_done = true;
}

}  // namespace blindfuse
