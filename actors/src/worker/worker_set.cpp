#include "worker_set.hpp"

#include <utility>

#include <unistd.h>

#include <troupe/base/text.hpp>
#include "pool_core.hpp"

namespace troupe::detail {
namespace {

Result<void> check_options(const WorkerOptions& options) {
  if (options.count < 1 || options.count > 4096) return fail(Errc::kInvalidArgument, text("WorkerOptions::count must be 1 to 4096, got ", options.count));
  if (options.start_timeout <= Duration::zero() || options.heartbeat <= Duration::zero()) return fail(Errc::kInvalidArgument, "WorkerOptions: start_timeout and heartbeat must be > 0");
  if (options.heartbeat_timeout < 2 * options.heartbeat) return fail(Errc::kInvalidArgument, "WorkerOptions::heartbeat_timeout must be at least two heartbeats");
  return {};
}

}  // namespace

WorkerSet::WorkerSet(std::shared_ptr<Services> services, WorkerOptions options, std::unique_ptr<Launcher> launcher)
    : services_(std::move(services)), options_(std::move(options)), launcher_(std::move(launcher)), changed_(services_->clock()) {
  for (int index = 0; index < options_.count; ++index) slots_.push_back(std::make_unique<Slot>());
}

Result<std::shared_ptr<WorkerSet>> WorkerSet::create(std::shared_ptr<Services> services, WorkerOptions options) {
  if (auto ok = check_options(options); !ok) return fail(std::move(ok.error()));
  auto launcher = Launcher::create({services->transport.clock, services->transport.executor, services->transport.log});
  if (!launcher) return fail(std::move(launcher.error()));
  const std::shared_ptr<WorkerSet> out(new WorkerSet(std::move(services), std::move(options), std::move(*launcher)));
  std::vector<std::shared_ptr<Worker>> started;   // all before the first is waited for: they load their libraries side by side
  for (int index = 0; index < out->size(); ++index) {
    auto worker = out->start(index, 0);
    if (!worker) return fail(std::move(worker.error()));
    out->slots_[static_cast<std::size_t>(index)]->worker = std::move(*worker);
  }
  const Deadline until = out->services_->clock().after(out->options_.start_timeout);
  for (const auto& slot : out->slots_) {
    if (auto hello = slot->worker->wait_hello(until); !hello) return fail(std::move(hello.error()));
  }
  out->heart_ = Thread(out->services_->clock(), "troupe-heart", [set = out.get()] { set->watch(); });
  return out;
}

WorkerSet::~WorkerSet() { (void)stop(services_->clock().after(std::chrono::seconds(2))); }

Result<std::shared_ptr<Worker>> WorkerSet::start(int index, std::uint32_t incarnation) {
  auto sockets = socket_pair();
  if (!sockets) return fail(std::move(sockets.error()));
  ProcessSpec spec{.name = text("worker ", index), .executable = options_.executable.empty() ? "/proc/self/exe" : options_.executable, .arguments = options_.arguments};
  spec.arguments.push_back(text("--troupe-worker=", getpid()));
  spec.environment = options_.environment;
  spec.descriptors = {sockets->second.get()};
  auto process = launcher_->start(std::move(spec));
  if (!process) return fail(std::move(process.error()));
  auto worker = std::make_shared<Worker>(services_->clock(), std::move(*process), std::move(sockets->first), incarnation);
  worker->start();
  return worker;
}

Clock& WorkerSet::clock() const { return services_->clock(); }

std::shared_ptr<Worker> WorkerSet::at(int index) {
  const std::lock_guard lock(mutex_);
  return slots_[static_cast<std::size_t>(index)]->worker;
}

Result<std::shared_ptr<Worker>> WorkerSet::living(int index) {
  Slot& slot = *slots_[static_cast<std::size_t>(index)];
  const std::lock_guard one_at_a_time(slot.starting);
  auto worker = at(index);
  if (!worker->lost()) return worker;
  {
    const std::lock_guard lock(mutex_);
    if (stopping_) return fail(Errc::kClosed, "the runtime was shut down");
  }
  auto again = start(index, worker->incarnation() + 1);
  if (!again) return again;
  if (auto hello = (*again)->wait_hello(services_->clock().after(options_.start_timeout)); !hello) return fail(std::move(hello.error()));
  const std::lock_guard lock(mutex_);
  if (stopping_) return fail(Errc::kClosed, "the runtime was shut down");
  slot.worker = *again;
  return again;
}

/// SUP-10: a worker that is stopped or stuck in the kernel looks like one that works; only answers tell.
void WorkerSet::watch() {
  std::unique_lock lock(mutex_);
  while (!changed_.wait(lock, services_->clock().after(options_.heartbeat), [this] { return stopping_; })) {
    std::vector<std::shared_ptr<Worker>> workers;
    for (const auto& slot : slots_) workers.push_back(slot->worker);
    lock.unlock();
    for (const auto& worker : workers) {
      if (worker->lost()) continue;
      const auto silence = services_->clock().now() - worker->last_heard();
      if (silence > options_.heartbeat_timeout) {
        worker->give_up(text("was ended: it had not answered for ", std::chrono::duration<double>(silence).count(), " s"));
      } else {
        worker->tell(Frame::kPing, [](WireWriter&) {});
      }
    }
    lock.lock();
  }
}

Result<void> WorkerSet::stop(Deadline until) {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    changed_.notify_all();
  }
  if (heart_.joinable()) heart_.join();
  return launcher_->stop(until);
}

}  // namespace troupe::detail
