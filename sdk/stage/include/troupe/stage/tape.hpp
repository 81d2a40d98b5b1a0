#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <troupe/stage/edge.hpp>

namespace troupe {

namespace detail {
class GraphCore;
struct TapeCore;

/// Names a value on the ranks that made it; no data.
struct ValueName {
  NodeId node;
  std::string port;                ///< "" the whole output, else the member.
  std::vector<Ref<Output>> refs;   ///< One per rank of the node.
  MicroRange range;                ///< The samples it is about.
};

[[nodiscard]] Result<Ref<Output>> next_batch(GraphCore& graph, NodeId source, Duration timeout);
/// Submits one forward; a missing edge or a wrong tape makes a value that fails where it is used.
[[nodiscard]] ValueName submit_forward(TapeCore& tape, NodeId stage, std::vector<ValueName> inputs);
void submit_backward(TapeCore& tape, const ValueName& from);
}  // namespace detail

template <class M>
class Stage;

/// The output of a stage for one micro-batch, by name (level B). `get<&O::member>()` names a part of it.
template <class T>
class Value {
 public:
  explicit Value(detail::ValueName name) : name_(std::move(name)) {}
  template <auto P>
    requires std::is_same_v<typename detail::MemberPointer<P>::Class, T>
  [[nodiscard]] Value<typename detail::MemberPointer<P>::Type> get() const {
    detail::ValueName part = name_;
    part.port = detail::verb_name<P>();
    return Value<typename detail::MemberPointer<P>::Type>(std::move(part));
  }
  [[nodiscard]] const detail::ValueName& name() const noexcept { return name_; }

 private:
  detail::ValueName name_;
};

/// A batch, or the part of it that makes one micro-batch; the data stays with the source.
template <class Batch>
class GlobalBatch {
 public:
  GlobalBatch(NodeId source, Ref<detail::Output> ref, detail::MicroRange range)
      : source_(source), ref_(std::move(ref)), range_(range) {}

  [[nodiscard]] std::int64_t samples() const noexcept { return range_.samples; }

  template <auto P>
    requires std::is_same_v<typename detail::MemberPointer<P>::Class, Batch>
  [[nodiscard]] Value<typename detail::MemberPointer<P>::Type> get() const {
    return Value<typename detail::MemberPointer<P>::Type>({source_, std::string(detail::verb_name<P>()), {ref_}, range_});
  }

  /// `parts` micro-batches of samples in order, sizes as share_of() says; parts past the number of
  /// samples are left out.
  [[nodiscard]] std::vector<GlobalBatch> split(int parts) const {
    std::vector<GlobalBatch> out;
    for (int part = 0; part < parts; ++part) {
      const Share share = share_of(range_.samples, parts, part);
      if (share.size > 0) out.push_back(GlobalBatch(source_, ref_, {range_.begin + share.begin, share.size, range_.batch_samples}));
    }
    return out;
  }

 private:
  NodeId source_;
  Ref<detail::Output> ref_;
  detail::MicroRange range_;
};

/// One micro-batch's way through the stages (level B): which graphs its ranks keep. Calls submit only;
/// failures show at the optimizer's step, which joins the tapes. Thread: the driver's.
class Tape {
 public:
  explicit Tape(std::shared_ptr<detail::TapeCore> core) : core_(std::move(core)) {}

  /// Forward through `stage`. Inputs are values of this tape or parts of a batch, of the types that
  /// forward() takes, each over a connection made by connect(): else kNoEdge at the join.
  template <class M, class... T>
    requires std::is_same_v<std::tuple<T...>, typename Stage<M>::Inputs>
  Value<typename Stage<M>::Output> operator()(const Stage<M>& stage, const Value<T>&... inputs) {
    return Value<typename Stage<M>::Output>(detail::submit_forward(*core_, stage.id(), {inputs.name()...}));
  }

  /// Backward from a Loss to everything this tape ran for it. Once per tape.
  void backward(const Value<Loss>& loss) { detail::submit_backward(*core_, loss.name()); }

  [[nodiscard]] const std::shared_ptr<detail::TapeCore>& core() const noexcept { return core_; }

 private:
  std::shared_ptr<detail::TapeCore> core_;
};

}  // namespace troupe
