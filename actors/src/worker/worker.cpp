#include "worker.hpp"

#include <utility>

#include <troupe/base/text.hpp>

namespace troupe::detail {
namespace {

constexpr Duration kDyingPatience = std::chrono::seconds(1);   // between the end of the stream and the kernel's word

Result<std::vector<std::byte>> answer_of(WireReader& from) {
  if (!from.number<bool>()) return fail(read_error(from));
  const auto value = from.take(from.left());
  return std::vector<std::byte>(value.begin(), value.end());
}

}  // namespace

Worker::Worker(Clock& clock, std::shared_ptr<Process> process, Descriptor socket, std::uint32_t incarnation)
    : clock_(clock), process_(std::move(process)), incarnation_(incarnation), changed_(clock), last_heard_(clock.now()), link_(clock, std::move(socket), process_->name()) {}

Worker::~Worker() { process_->kill(); }

void Worker::start() {
  link_.start([this](std::span<const std::byte> frame) { on_frame(frame); }, [this](const Error& why) { on_end(why); });
}

void Worker::on_frame(std::span<const std::byte> frame) {
  last_heard_ = clock_.now();
  WireReader from(frame);
  const auto kind = from.number<Frame>();
  if (kind == Frame::kPing) return;
  const std::lock_guard lock(mutex_);
  if (kind == Frame::kHello) {
    const auto version = from.number<std::uint32_t>();
    const auto table = from.number<std::uint64_t>();
    hello_ = Result<void>();
    if (version != kProtocolVersion || table != wire_table_hash()) {
      hello_ = fail(Errc::kMismatch, text(process_->name(), " is another program than its host (protocol ", version, " and ", kProtocolVersion, ", verbs ", table, " and ", wire_table_hash(),
                                          "): WorkerOptions::executable must be built from the same sources"));
    }
  } else {
    const auto found = waiters_.find(from.number<std::uint64_t>());
    if (kind != Frame::kAnswer) throw Exception(Error{.code = Errc::kBadData, .message = text("a frame of kind ", static_cast<int>(kind))});
    if (found == waiters_.end()) return;   // it has stopped waiting
    found->second.answer = answer_of(from);
  }
  changed_.notify_all();
}

Error Worker::death(const std::string& doing) const {
  return {.code = Errc::kPeerLost, .message = text(process_->name(), " (pid ", process_->pid(), ") ", how_, " while it ran ", doing), .origin = {.incarnation = incarnation_}, .maybe_executed = true};
}

void Worker::on_end(const Error& why) {
  auto ended = process_->wait(clock_.after(kDyingPatience));
  if (!ended) {   // it closed its end, or sent garbage, and lives
    process_->kill();
    ended = process_->wait(clock_.after(kDyingPatience));
  }
  const std::lock_guard lock(mutex_);
  how_ = !given_up_.empty() ? given_up_ : text("ended: ", ended ? ended->description : why.message);
  if (ended && !ended->last_errors.empty()) how_ += text("; it last wrote: ", ended->last_errors);
  is_lost_ = true;
  if (!hello_) hello_ = fail(death("its start"));
  for (auto& [number, waiter] : waiters_) {
    if (!waiter.answer) waiter.answer = fail(death(waiter.doing));
  }
  changed_.notify_all();
}

Result<void> Worker::wait_hello(Deadline until) {
  std::unique_lock lock(mutex_);
  if (!changed_.wait(lock, until, [this] { return hello_.has_value(); })) {
    return fail(Errc::kTimeout, text(process_->name(), " (pid ", process_->pid(), ") said nothing after its start: does its main call troupe::worker_main() first?"));
  }
  return *hello_;
}

Result<std::vector<std::byte>> Worker::ask(Frame kind, const std::string& doing, const Fill& fill, Deadline until) {
  std::unique_lock lock(mutex_);
  if (is_lost_) return fail(death(doing));
  const std::uint64_t number = next_number_++;
  Waiter& waiter = waiters_[number];   // a map's entries stay where they are
  waiter.doing = doing;
  lock.unlock();
  WireWriter to;
  to.number(kind);
  to.number(number);
  fill(to);
  if (auto sent = link_.send(to.bytes()); !sent && sent.error().code == Errc::kLimit) {
    lock.lock();
    waiters_.erase(number);
    return fail(std::move(sent.error()));
  }
  lock.lock();   // a stream that has ended completes it too, and says how
  const bool in_time = changed_.wait(lock, until, [&] { return waiter.answer.has_value(); });
  auto answer = in_time ? std::move(*waiter.answer) : Result<std::vector<std::byte>>(fail(Errc::kTimeout, text(process_->name(), " did not answer in time to ", doing)));
  waiters_.erase(number);
  return answer;
}

void Worker::tell(Frame kind, const Fill& fill) {
  WireWriter to;
  to.number(kind);
  to.number(std::uint64_t{0});
  fill(to);
  (void)link_.send(to.bytes());
}

void Worker::give_up(const std::string& why) {
  {
    const std::lock_guard lock(mutex_);
    if (is_lost_ || !given_up_.empty()) return;
    given_up_ = why;
  }
  process_->kill();
  link_.end();
}

}  // namespace troupe::detail
