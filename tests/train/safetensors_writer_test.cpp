#include <csignal>
#include <cstdlib>

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <sys/resource.h>

#include <troupe/train/safetensors.hpp>
#include <troupe/train/tensor_folder.hpp>

#include "files.hpp"
#include "golden.hpp"

namespace troupe {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

void expect_error(const Result<void>& result, Errc code, const char* says) {
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, code);
  EXPECT_THAT(result.error().message, HasSubstr(says));
}

TEST(SafetensorsWriter, EveryDtypeComesBackAsItWas) {
  const TemporaryFolder temporary;
  const char* keep = std::getenv("TROUPE_KEEP_FILES");  // for make.py --read
  const std::string folder = keep == nullptr ? temporary.path() : keep;
  const auto tensors = golden_tensors();
  const std::map<std::string, std::string> metadata = {{"format", "pt"}, {"note", "a \"quoted\" é line\n"}};
  ASSERT_TRUE(write_safetensors(folder + "/types.safetensors", tensors, metadata));
  ASSERT_TRUE(write_tensor_folder(folder + "/sharded", tensors, {.max_shard_bytes = 200}));
  const auto back = read_safetensors(folder + "/types.safetensors");
  ASSERT_TRUE(back) << back.error().describe();
  ASSERT_EQ(back->size(), tensors.size());
  for (const auto& [name, value] : tensors) EXPECT_TRUE(same_bits(back->at(name), value)) << name;
  EXPECT_EQ(or_throw(SafetensorsFile::open(folder + "/types.safetensors"))->header().metadata, metadata);
}

TEST(SafetensorsWriter, DataBeginOn64BytesAndTensorsOnTheirOwnWidth) {
  const TemporaryFolder folder;
  for (const char* name : {"a", "abcdefg", "abcdefghijklmnopqrstuvwxyz"}) {
    ASSERT_TRUE(write_safetensors(folder / "x", {{name, at::ones({3}, at::kByte)}, {"b", at::ones({3}, at::kDouble)}, {"c", at::ones({5}, at::kHalf)}, {"d", at::ones({1}, at::kFloat)}}));
    const auto header = or_throw(SafetensorsFile::open(folder / "x"))->header();
    EXPECT_EQ(header.data_begin % 64, 0);
    EXPECT_EQ(header.tensors.at("b").begin % 8, 0);
    EXPECT_EQ(header.tensors.at("d").begin % 4, 0);
    EXPECT_EQ(header.tensors.at("c").begin % 2, 0);
  }
}

TEST(SafetensorsWriter, TheSameTensorsMakeTheSameBytes) {
  const TemporaryFolder folder;
  ASSERT_TRUE(write_safetensors(folder / "a", golden_tensors()));
  std::map<std::string, SafetensorsWriter::Declared> declared;
  for (const auto& [name, value] : golden_tensors()) declared.emplace(name, SafetensorsWriter::Declared{value.scalar_type(), value.sizes().vec()});
  auto writer = SafetensorsWriter::create(folder / "b", declared);
  ASSERT_TRUE(writer) << writer.error().describe();
  const auto tensors = golden_tensors();
  for (auto one = tensors.rbegin(); one != tensors.rend(); ++one) ASSERT_TRUE(writer->write(one->first, one->second));   // any order
  ASSERT_TRUE(writer->finish());
  EXPECT_EQ(content_of(folder / "a"), content_of(folder / "b"));
}

TEST(SafetensorsWriter, AnyStridesArePacked) {
  const TemporaryFolder folder;
  const at::Tensor base = at::arange(60, at::kFloat).reshape({5, 12});
  const std::map<std::string, at::Tensor> tensors = {{"t", base.t()}, {"step", base.slice(1, 1, 12, 3)}, {"row", base.select(0, 3)}, {"expand", base.select(1, 0).unsqueeze(1).expand({5, 3})}};
  ASSERT_TRUE(write_safetensors(folder / "x", tensors));
  const auto back = read_safetensors(folder / "x");
  ASSERT_TRUE(back) << back.error().describe();
  for (const auto& [name, value] : tensors) EXPECT_TRUE(at::equal(back->at(name), value)) << name;
}

TEST(SafetensorsWriter, HoldsCallersToWhatTheyDeclared) {
  const TemporaryFolder folder;
  auto writer = SafetensorsWriter::create(folder / "x", {{"a", {at::kFloat, {2, 3}}}, {"b", {at::kLong, {}}}});
  ASSERT_TRUE(writer) << writer.error().describe();
  expect_error(writer->write("c", at::ones({1})), Errc::kMismatch, "tensor 'c': was not declared");
  expect_error(writer->write("a", at::ones({3, 2})), Errc::kMismatch, "tensor 'a': declared as Float [2, 3], got Float [3, 2]");
  expect_error(writer->write("a", at::ones({2, 3}, at::kDouble)), Errc::kMismatch, "declared as Float [2, 3], got Double [2, 3]");
  expect_error(writer->write("a", at::Tensor()), Errc::kInvalidArgument, "tensor 'a'");
  expect_error(writer->write("a", at::empty({2, 3}, at::device(at::kMeta))), Errc::kInvalidArgument, "only a dense tensor with data");
  ASSERT_TRUE(writer->write("a", at::ones({2, 3})));
  expect_error(writer->write("a", at::ones({2, 3})), Errc::kMismatch, "tensor 'a': was written before");
  expect_error(writer->finish(), Errc::kMismatch, "1 declared tensors were not written, the first is 'b'");
  EXPECT_FALSE(std::filesystem::exists(folder / "x"));
}

TEST(SafetensorsWriter, WhatTheFormatCannotHoldIsRefusedBeforeAFileIsMade) {
  const TemporaryFolder folder;
  const auto create = [&](const std::string& name, SafetensorsWriter::Declared declared) -> Result<void> {
    auto writer = SafetensorsWriter::create(folder / "x", {{name, std::move(declared)}});
    if (!writer) return fail(writer.error());
    return {};
  };
  expect_error(create("a", {at::kComplexDouble, {1}}), Errc::kInvalidArgument, "tensor 'a': safetensors has no name for dtype ComplexDouble");
  expect_error(create("__metadata__", {at::kFloat, {1}}), Errc::kInvalidArgument, "keeps this name");
  expect_error(create("\xff", {at::kFloat, {1}}), Errc::kInvalidArgument, "not UTF-8");
  expect_error(create("a", {at::kFloat, {-1}}), Errc::kInvalidArgument, "no tensor can be Float [-1]");
  expect_error(create("a", {at::kFloat, {1LL << 40, 1LL << 40}}), Errc::kInvalidArgument, "no tensor can be");
  EXPECT_EQ(folder.count(), 0);
  expect_error(write_safetensors(folder / "none/x", {}), Errc::kIo, "none/x.part");
}

TEST(SafetensorsWriter, AnUnfinishedFileLeavesTheOldOne) {
  const TemporaryFolder folder;
  ASSERT_TRUE(write_safetensors(folder / "x", {{"a", at::zeros({2})}}));
  {
    auto writer = SafetensorsWriter::create(folder / "x", {{"a", {at::kFloat, {2}}}});
    ASSERT_TRUE(writer);
    ASSERT_TRUE(writer->write("a", at::ones({2})));
    ASSERT_TRUE(writer->seal());
    EXPECT_EQ(folder.count(), 2);
  }
  EXPECT_EQ(folder.count(), 1);
  EXPECT_TRUE(at::equal(or_throw(read_safetensors(folder / "x")).at("a"), at::zeros({2})));
}

TEST(SafetensorsWriter, AFullDiskIsAnErrorAndLeavesTheOldFile) {
  const TemporaryFolder folder;
  ASSERT_TRUE(write_safetensors(folder / "x", {{"a", at::zeros({2})}}));
  ::rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  auto* const handler = std::signal(SIGXFSZ, SIG_IGN);
  const ::rlimit small{4096, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const auto written = write_safetensors(folder / "x", {{"a", at::ones({5000})}});
  const auto text = write_file(folder / "y", std::string(5000, 'y'));
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  expect_error(written, Errc::kIo, "x.part: can't be written");
  expect_error(text, Errc::kIo, "y.part: can't be written");
  EXPECT_EQ(folder.count(), 1);
  EXPECT_TRUE(at::equal(or_throw(read_safetensors(folder / "x")).at("a"), at::zeros({2})));
}

TEST(WriteFile, WritesWhatReadFileReads) {
  const TemporaryFolder folder;
  for (const std::string& content : {std::string(), std::string("a\0b\n", 4), std::string(100'000, 'x')}) {
    ASSERT_TRUE(write_file(folder / "x", content));
    EXPECT_EQ(or_throw(read_file(folder / "x")), content);
  }
  EXPECT_EQ(folder.count(), 1);
  expect_error(write_file(folder / "none/x", ""), Errc::kIo, "none/x.part: can't be made");
  const auto none = read_file(folder / "y");
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, Errc::kIo);
}

/// Some tensor of 0 to 4 small dims, of any stored dtype.
at::Tensor any_tensor() {
  static const std::vector<c10::ScalarType> types = {at::kDouble, at::kFloat, at::kHalf, at::kBFloat16, at::kFloat8_e4m3fn, at::kLong, at::kShort, at::kByte, at::kBool, at::kUInt16, at::kComplexFloat};
  const auto shape = *rc::gen::resize(4, rc::gen::container<std::vector<std::int64_t>>(rc::gen::inRange<std::int64_t>(0, 9)));
  const auto type = *rc::gen::elementOf(types);
  return type == at::kComplexFloat ? at::complex(golden_value(shape, at::kFloat), golden_value(shape, at::kFloat).neg()) : golden_value(shape, type);
}

TEST(SafetensorsProperty, AnyPartOfAnyFileIsThatPartOfTheTensor) {
  const TemporaryFolder folder;
  EXPECT_TRUE(rc::check([&] {
    std::map<std::string, at::Tensor> tensors;
    const int count = *rc::gen::inRange(0, 6);
    for (int i = 0; i < count; ++i) tensors.emplace(*rc::gen::container<std::string>(rc::gen::inRange('a', 'e')), any_tensor());
    const auto limit = *rc::gen::inRange<std::int64_t>(1, 4000);
    RC_ASSERT(write_tensor_folder(folder.path(), tensors, {.max_shard_bytes = limit}).has_value());
    const auto files = TensorFolder::open(folder.path());
    RC_ASSERT(files.has_value());
    std::int64_t bytes = 0;
    for (const auto& [name, tensor] : tensors) {
      RC_ASSERT(same_bits(or_throw((*files)->read(name, {})), tensor));
      bytes += static_cast<std::int64_t>(tensor.nbytes());
      if (tensor.dim() == 0) continue;
      const int dim = *rc::gen::inRange(0, static_cast<int>(tensor.dim()));
      std::vector<Share> ranges;
      std::vector<at::Tensor> parts;
      for (int i = *rc::gen::inRange(1, 4); i > 0; --i) {
        const auto begin = *rc::gen::inRange<std::int64_t>(0, tensor.size(dim) + 1);
        ranges.push_back({begin, *rc::gen::inRange<std::int64_t>(0, tensor.size(dim) - begin + 1)});
        parts.push_back(tensor.narrow(dim, begin, ranges.back().size));
      }
      const at::Tensor wanted = at::cat(parts, dim);
      RC_ASSERT(same_bits(or_throw((*files)->read(name, {dim, ranges})), wanted));
      bytes += static_cast<std::int64_t>(wanted.nbytes());
    }
    RC_ASSERT((*files)->bytes_read() == bytes);
  }));
}

}  // namespace
}  // namespace troupe
