// What the linker puts in the place of these functions in every object of the program (--wrap). A thread
// that is not one of a run's passes through to the real ones.
#include <cerrno>
#include <ctime>

#include <pthread.h>
#include <sched.h>

#include "scheduler.hpp"

using troupe::explore::current_runner;
using troupe::explore::Kind;
using troupe::explore::Runner;
using troupe::explore::State;

extern "C" {

int __real_pthread_mutex_lock(pthread_mutex_t* mutex);
int __real_pthread_mutex_trylock(pthread_mutex_t* mutex);
int __real_pthread_mutex_unlock(pthread_mutex_t* mutex);
int __real_pthread_once(pthread_once_t* once, void (*routine)());
int __real_sched_yield();
int __real_nanosleep(const timespec* wanted, timespec* left);
int __real___cxa_guard_acquire(std::int64_t* guard);
void __real___cxa_guard_release(std::int64_t* guard);
void __real___cxa_guard_abort(std::int64_t* guard);

int __wrap_pthread_mutex_lock(pthread_mutex_t* mutex) {
  Runner* const me = current_runner();
  if (me == nullptr) return __real_pthread_mutex_lock(mutex);
  me->scheduler->point(*me, Kind::kLock);
  int result = 0;
  while ((result = __real_pthread_mutex_trylock(mutex)) == EBUSY) {
    // held by a thread outside the run (a test framework's): it will let go by itself
    if (!me->scheduler->owns(mutex)) {
      result = __real_pthread_mutex_lock(mutex);
      break;
    }
    me->scheduler->block(*me, State::kMutex, Kind::kLock, mutex, troupe::Deadline::never());
  }
  if (result == 0) me->scheduler->locked(*me, mutex);
  return result;
}

int __wrap_pthread_mutex_trylock(pthread_mutex_t* mutex) {
  Runner* const me = current_runner();
  if (me == nullptr) return __real_pthread_mutex_trylock(mutex);
  me->scheduler->point(*me, Kind::kLock);
  const int result = __real_pthread_mutex_trylock(mutex);
  if (result == 0) me->scheduler->locked(*me, mutex);
  return result;
}

int __wrap_pthread_mutex_unlock(pthread_mutex_t* mutex) {
  const int result = __real_pthread_mutex_unlock(mutex);
  Runner* const me = current_runner();
  if (me == nullptr) return result;
  me->scheduler->unlocked(mutex);
  if (me->state == State::kRunnable) me->scheduler->point(*me, Kind::kUnlock);  // else: about to wait
  return result;
}

int __wrap_sched_yield() {
  Runner* const me = current_runner();
  if (me == nullptr) return __real_sched_yield();
  me->scheduler->yield(*me);
  return 0;
}

int __wrap_nanosleep(const timespec* wanted, timespec* left) {
  Runner* const me = current_runner();
  if (me == nullptr) return __real_nanosleep(wanted, left);
  const auto duration = std::chrono::seconds(wanted->tv_sec) + std::chrono::nanoseconds(wanted->tv_nsec);
  me->scheduler->block(*me, State::kSleep, Kind::kSleep, me, troupe::Deadline::at(me->scheduler->now() + duration));
  return 0;
}

// A static's initialisation keeps the baton: whoever else needs the static would block where no hook sees it.
int __wrap_pthread_once(pthread_once_t* once, void (*routine)()) {
  Runner* const me = current_runner();
  if (me != nullptr) ++me->initialising;
  const int result = __real_pthread_once(once, routine);
  if (me != nullptr) --me->initialising;
  return result;
}

int __wrap___cxa_guard_acquire(std::int64_t* guard) {
  Runner* const me = current_runner();
  const int mine = __real___cxa_guard_acquire(guard);
  if (mine != 0 && me != nullptr) ++me->initialising;
  return mine;
}

void __wrap___cxa_guard_release(std::int64_t* guard) {
  if (Runner* const me = current_runner()) --me->initialising;
  __real___cxa_guard_release(guard);
}

void __wrap___cxa_guard_abort(std::int64_t* guard) {
  if (Runner* const me = current_runner()) --me->initialising;
  __real___cxa_guard_abort(guard);
}

}  // extern "C"
