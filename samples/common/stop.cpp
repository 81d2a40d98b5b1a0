#include "stop.hpp"

#include <csignal>
#include <pthread.h>
#include <thread>

namespace samples {

struct StopOnSignal::Waiter {
  sigset_t signals{};
  sigset_t before{};
  std::thread thread;
};

StopOnSignal::StopOnSignal() : waiter_(new Waiter) {
  sigemptyset(&waiter_->signals);
  for (const int signal : {SIGINT, SIGTERM, SIGUSR1}) sigaddset(&waiter_->signals, signal);
  pthread_sigmask(SIG_BLOCK, &waiter_->signals, &waiter_->before);
  waiter_->thread = std::thread([this] {
    int got = 0;
    while (sigwait(&waiter_->signals, &got) == 0) {
      if (got == SIGUSR1) return;  // from our destructor, to this thread only
      if (source_.stop_requested()) {
        // asked twice: the user does not want to wait for the step
        std::signal(got, SIG_DFL);
        pthread_sigmask(SIG_UNBLOCK, &waiter_->signals, nullptr);
        std::raise(got);
      }
      source_.request_stop();
    }
  });
}

StopOnSignal::~StopOnSignal() {
  pthread_kill(waiter_->thread.native_handle(), SIGUSR1);
  waiter_->thread.join();
  pthread_sigmask(SIG_SETMASK, &waiter_->before, nullptr);
  delete waiter_;
}

}  // namespace samples
