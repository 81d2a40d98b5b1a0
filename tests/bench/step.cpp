#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>

#include <troupe/parallel/gradients.hpp>
#include <troupe/parallel/linear.hpp>
#include <troupe/parallel/optimizer.hpp>
#include <troupe/stage/environment.hpp>
#include <troupe/stage/graph.hpp>
#include <troupe/torch/rank_scope.hpp>

#include "rows.hpp"

namespace bench {
namespace {

using namespace std::chrono_literals;
using namespace troupe;

constexpr std::int64_t kWidth = 256, kRows = 64;
constexpr int kLayers = 3;

/// What both programs compute: a stack of linears.
class Stack {
 public:
  explicit Stack(const Parameters& parameters) {
    for (int layer = 0; layer < kLayers; ++layer) layers_.emplace_back(parameters.scope(std::to_string(layer)), kWidth, kWidth);
  }
  [[nodiscard]] at::Tensor forward(at::Tensor x) const {
    for (const auto& layer : layers_) x = at::gelu(layer.forward(x));
    return x;
  }

 private:
  std::vector<Linear> layers_;
};

struct Empty {
  static auto troupe_fields(auto&) { return std::tie(); }
};
struct Batch {
  Packed rows;
  static auto troupe_fields(auto& self) { return std::tie(self.rows); }
};
class Ones {
 public:
  explicit Ones(const Empty&) { batch_.rows = {at::ones({kRows, kWidth}), {{.id = 0, .sample = 0, .rows = kRows}}}; }
  std::optional<Batch> next() { return batch_; }

 private:
  Batch batch_;
};
class Encoder {
 public:
  Encoder(Rank& rank, const Empty&) : stack_(rank.parameters("stack")) {}
  Packed forward(const Packed& in) { return {stack_.forward(in.rows), in.segments}; }

 private:
  Stack stack_;
};
class Decoder {
 public:
  Decoder(Rank& rank, const Empty&) : stack_(rank.parameters("stack")) {}
  Loss forward(const Packed& in) { return {stack_.forward(in.rows).square().sum(), kRows}; }

 private:
  Stack stack_;
};

/// A queue as anybody would write it.
class Queue {
 public:
  void push(at::Tensor value) {
    std::lock_guard lock(mutex_);
    values_.push_back(std::move(value));
    changed_.notify_one();
  }
  at::Tensor pop() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !values_.empty(); });
    at::Tensor out = std::move(values_.front());
    values_.pop_front();
    return out;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<at::Tensor> values_;
};

/// One stage of the program by hand.
struct Hand {
  explicit Hand(const char* prefix) {
    store.configure({.prefix = prefix});
    stack = std::make_unique<Stack>(Parameters(store, "stack"));
    std::vector<std::size_t> all(store.entries().size());
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = i;
    adam = std::make_unique<AdamW>(store, std::vector<AdamGroup>{{all, 1e-3, 0.01}}, AdamOptions{});
  }
  void update(Queue& mine, Queue& other) {
    const at::Tensor own = local_norm_square(store);
    other.push(own);
    const at::Tensor norm = (own + mine.pop()).sqrt() / static_cast<double>(kRows);
    adam->step(1.0, (1.0 / (norm + 1e-6)).clamp_max(1.0) / static_cast<double>(kRows));
    store.zero_grad();
  }
  ParameterStore store;
  std::unique_ptr<Stack> stack;
  std::unique_ptr<AdamW> adam;
};

struct Queues {
  Queue values, gradients, norms_a, norms_b, go, done;
};

void encode(Queues& q) {
  const RankThreadScope scope(1);
  Hand hand("encoder");
  const at::Tensor input = at::ones({kRows, kWidth});
  while (q.go.pop().defined()) {
    const at::Tensor out = hand.stack->forward(input);
    q.values.push(out.detach());
    torch::autograd::backward({out}, {q.gradients.pop()});
    hand.update(q.norms_a, q.norms_b);
    q.done.push(input);
  }
}

void decode(Queues& q) {
  const RankThreadScope scope(1);
  Hand hand("decoder");
  for (at::Tensor leaf = q.values.pop(); leaf.defined(); leaf = q.values.pop()) {
    leaf.set_requires_grad(true);
    const at::Tensor loss = hand.stack->forward(leaf).square().sum();
    loss.backward();
    q.gradients.push(leaf.grad());
    hand.update(q.norms_b, q.norms_a);
    q.done.push(loss.detach());
  }
}

/// Two threads that call the modules by hand over mutex queues: the same work, nothing else.
double by_hand(int steps) {
  Queues q;
  std::thread encoder([&] { encode(q); });
  std::thread decoder([&] { decode(q); });
  const auto run = [&](int count) {
    const double start = now();
    for (int i = 0; i < count; ++i) {
      q.go.push(at::ones({1}));
      (void)q.done.pop();
      (void)q.done.pop();
    }
    return (now() - start) / count;
  };
  (void)run(20);
  const double seconds = run(steps);
  q.go.push({});
  encoder.join();
  q.values.push({});
  decoder.join();
  return seconds;
}

}  // namespace

std::vector<Row> step() {
  RuntimeOptions options;
  options.environment = torch_environment();
  options.check_arguments = false;
  const Runtime runtime = or_throw(Runtime::create(std::move(options)));
  Graph graph(runtime);
  const auto data = or_throw(graph.source<Ones>({.prefetch = 2}, Empty{}));
  const auto encoder = or_throw(graph.stage<Encoder>({.name = "encoder"}, Empty{}));
  const auto decoder = or_throw(graph.stage<Decoder>({.name = "decoder"}, Empty{}));
  graph.connect(data.out<&Batch::rows>(), encoder.in<0>(), {.to = replicate()});
  graph.connect(encoder.out(), decoder.in<0>(), {.to = replicate(Grad::kReplicated)});
  const auto optimizer = or_throw(graph.optimizer({.groups = {{"*", 1e-3, 0.01}}, .clip = 1.0}));
  const auto by_graph = [&](int steps) {
    const double start = now();
    for (int i = 0; i < steps; ++i) (void)or_throw(graph.step(optimizer));
    return (now() - start) / steps;
  };
  (void)by_graph(20);
  constexpr int kCalls = 9;   // next, 2 x (forward, backward, reduce, apply)
  Row row = paired("step.overhead", "us", 9, [&] { return 1e6 * by_graph(100); }, [&] { return 1e6 * by_hand(100); });
  const double graph_us = *row.value;
  row.value = (graph_us - *row.baseline) / kCalls;
  row.reason = "per call; a step takes " + std::to_string(graph_us / 1e3) + " ms by graph, " + std::to_string(*row.baseline / 1e3) + " ms by hand; " + row.reason;
  return {with_target(std::move(row), Of::kValue, true, 50)};
}

}  // namespace bench
