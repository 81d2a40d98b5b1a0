#pragma once

#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include <troupe/actors/rank.hpp>
#include <troupe/stage/edge.hpp>

namespace troupe::detail {

/// What a module's forward returned: its graph outputs and the detached value that leaves the rank.
struct ForwardResult {
  std::vector<Packed> packed;             ///< In port order; rows carry the graph.
  Loss loss;                              ///< sum undefined: no loss.
  std::shared_ptr<const void> object;     ///< The same, detached (EDG-5).
};

/// A user's module behind one interface, so that a stage is one pool type whatever it holds.
class Module {
 public:
  virtual ~Module() = default;
  [[nodiscard]] virtual ForwardResult forward(std::span<const InputValue> inputs) = 0;
  [[nodiscard]] virtual std::vector<PortSpec> input_ports() const = 0;
  [[nodiscard]] virtual std::vector<PortSpec> output_ports() const = 0;
  [[nodiscard]] virtual void* object() noexcept = 0;  ///< The user's M.
};
using ModuleFactory = std::function<std::unique_ptr<Module>(Rank&)>;

template <class M>
class ModuleOf final : public Module {
 public:
  template <class Config>
  ModuleOf(Rank& rank, const Config& config) : module_(rank, config) {}

  [[nodiscard]] ForwardResult forward(std::span<const InputValue> inputs) override {
    return pack(call(inputs, std::make_index_sequence<std::tuple_size_v<forward_parameters<M>>>()));
  }
  [[nodiscard]] std::vector<PortSpec> input_ports() const override {
    if constexpr (requires { module_.input_ports(); }) return module_.input_ports();
    return {};
  }
  [[nodiscard]] std::vector<PortSpec> output_ports() const override {
    if constexpr (requires { module_.output_ports(); }) return module_.output_ports();
    return {};
  }
  [[nodiscard]] void* object() noexcept override { return &module_; }

 private:
  using Result = forward_result<M>;

  template <std::size_t... I>
  Result call(std::span<const InputValue> inputs, std::index_sequence<I...>) {
    return module_.forward(*static_cast<forward_parameter<M, I>*>(inputs[I].value.get())...);
  }

  static ForwardResult pack(Result result) {
    ForwardResult out;
    if constexpr (std::is_same_v<Result, Loss>) {
      out.loss = std::move(result);
      out.object = std::make_shared<Loss>(Loss{out.loss.sum.detach(), out.loss.valid});
    } else {
      auto detached = std::make_shared<Result>(result);
      if constexpr (std::is_same_v<Result, Packed>) {
        detached->rows = detached->rows.detach();
        out.packed.push_back(std::move(result));
      } else {
        std::apply([](auto&... fields) { ((fields.rows = fields.rows.detach()), ...); }, Result::troupe_fields(*detached));
        std::apply([&out](auto&... fields) { (out.packed.push_back(std::move(fields)), ...); }, Result::troupe_fields(result));
      }
      out.object = std::move(detached);
    }
    return out;
  }

  M module_;
};

}  // namespace troupe::detail
