#include "bpe.hpp"

#include <algorithm>
#include <bit>

namespace qwen_vl {
namespace {

constexpr std::size_t kShort = 48;  // symbols up to which a scan for the lowest rank beats a heap
constexpr std::uint32_t kEnd = 0xFFFFFFFF;

std::uint64_t key_of(std::uint32_t left, std::uint32_t right) { return static_cast<std::uint64_t>(left) << 32 | right; }

/// For a heap whose top is the lowest rank, the leftmost of equals.
bool later(const Bpe::Scratch::Candidate& a, const Bpe::Scratch::Candidate& b) { return a.rank != b.rank ? a.rank > b.rank : a.at > b.at; }

}  // namespace

PairTable::PairTable(const std::vector<Merge>& merges) : slots_(std::bit_ceil(merges.size() + merges.size() / 2 + 2)), shift_(64 - std::countr_zero(slots_.size())) {
  for (std::uint32_t rank = 0; rank < merges.size(); ++rank) {
    const std::uint64_t key = key_of(merges[rank].left, merges[rank].right);
    Slot& slot = slots_[slot_of(key)];
    if (slot.found.rank == kNone) slot = {key, {rank, merges[rank].result}};
  }
}

std::size_t PairTable::slot_of(std::uint64_t key) const {
  std::size_t i = (key * 0x9E3779B97F4A7C15ull) >> shift_;
  while (slots_[i].found.rank != kNone && slots_[i].key != key) i = (i + 1) & (slots_.size() - 1);
  return i;
}

PairTable::Found PairTable::find(std::uint32_t left, std::uint32_t right) const { return slots_[slot_of(key_of(left, right))].found; }

Bpe::Bpe(const TokenTable& tokens, const std::vector<Merge>& merges, const std::array<std::uint32_t, 256>& byte_ids, bool whole_first)
    : tokens_(tokens), pairs_(merges), byte_ids_(byte_ids), whole_(tokens.size(), whole_first) {
  if (whole_first) return;
  Scratch scratch;
  for (std::uint32_t id = 0; id < tokens.size(); ++id) {
    merge(tokens.at(id), scratch);
    whole_[id] = scratch.symbols.size() == 1 && scratch.symbols[0].id == id;
  }
}

void Bpe::encode(std::string_view piece, Scratch& scratch, std::vector<std::int64_t>& out) const {
  if (piece.size() == 1) return out.push_back(byte_ids_[static_cast<std::uint8_t>(piece[0])]);
  if (const auto id = tokens_.find(piece); id && whole_[*id]) return out.push_back(*id);
  merge(piece, scratch);
  for (const auto& symbol : scratch.symbols) out.push_back(symbol.id);
}

void Bpe::merge(std::string_view piece, Scratch& scratch) const {
  auto& symbols = scratch.symbols;
  symbols.resize(piece.size());
  for (std::size_t i = 0; i < piece.size(); ++i) symbols[i].id = byte_ids_[static_cast<std::uint8_t>(piece[i])];
  for (std::size_t i = 0; i + 1 < symbols.size(); ++i) symbols[i].pair = pairs_.find(symbols[i].id, symbols[i + 1].id);
  if (!symbols.empty()) symbols.back().pair = {};
  symbols.size() <= kShort ? merge_short(symbols) : merge_long(scratch);
}

void Bpe::merge_short(std::vector<Scratch::Symbol>& symbols) const {
  while (symbols.size() > 1) {
    const auto best = std::min_element(symbols.begin(), symbols.end(), [](const auto& a, const auto& b) { return a.pair.rank < b.pair.rank; });
    if (best->pair.rank == PairTable::kNone) return;
    best->id = best->pair.result;
    const auto next = symbols.erase(best + 1);
    best->pair = next == symbols.end() ? PairTable::Found{} : pairs_.find(best->id, next->id);
    if (best != symbols.begin()) (best - 1)->pair = pairs_.find((best - 1)->id, best->id);
  }
}

void Bpe::merge_long(Scratch& scratch) const {
  auto& symbols = scratch.symbols;
  auto& heap = scratch.heap;
  const auto count = static_cast<std::uint32_t>(symbols.size());
  const auto push = [&](std::uint32_t at) {
    const std::uint32_t after = symbols[at].after;
    symbols[at].pair = after == kEnd ? PairTable::Found{} : pairs_.find(symbols[at].id, symbols[after].id);
    if (symbols[at].pair.rank == PairTable::kNone) return;
    heap.push_back({symbols[at].pair.rank, at, symbols[at].id, symbols[after].id});
    std::push_heap(heap.begin(), heap.end(), later);
  };
  heap.clear();
  for (std::uint32_t i = 0; i < count; ++i) symbols[i].before = i == 0 ? kEnd : i - 1, symbols[i].after = i + 1 == count ? kEnd : i + 1;
  for (std::uint32_t i = 0; i < count; ++i) push(i);
  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end(), later);
    const auto candidate = heap.back();
    heap.pop_back();
    auto& left = symbols[candidate.at];
    // Stale when either side has merged since: ids only grow longer, and a symbol merged away has kEnd for its id.
    if (left.id != candidate.left || left.after == kEnd || symbols[left.after].id != candidate.right) continue;
    auto& right = symbols[left.after];
    left.id = left.pair.result;
    right.id = kEnd;
    left.after = right.after;
    if (left.after != kEnd) symbols[left.after].before = candidate.at;
    push(candidate.at);
    if (left.before != kEnd) push(left.before);
  }
  std::erase_if(symbols, [](const auto& symbol) { return symbol.id == kEnd; });
}

}  // namespace qwen_vl
