#include "record_index.hpp"

#include <algorithm>

#include <troupe/base/text.hpp>

namespace qwen_vl {

using troupe::Errc;
using troupe::Result;
using troupe::text;

namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

bool is_space(char byte) { return byte == ' ' || byte == '\t' || byte == '\r' || byte == '\n'; }

}  // namespace

tl::unexpected<troupe::Error> RecordIndex::wrong(const std::string& what) const {
  return troupe::fail(Errc::kBadData, text(name_, ":", line_, ": ", what));
}

void RecordIndex::begin(State state) {
  state_ = state;
  current_ = {offset_, 0, line_};
  depth_ = 0;
  in_string_ = escaped_ = false;
}

void RecordIndex::end(std::int64_t offset) {
  current_.length = offset - current_.offset;
  places_.push_back(current_);
}

/// A byte of an array's element. Only brackets and strings count; the rest is for the parser of the record.
void RecordIndex::inside(char byte) {
  if (in_string_) {
    in_string_ = escaped_ || byte != '"';
    escaped_ = !escaped_ && byte == '\\';
    return;
  }
  in_string_ = byte == '"';
  if (byte == '{' || byte == '[') ++depth_;
  if (byte == '}' || byte == ']') --depth_;
}

/// A byte outside of records.
Result<void> RecordIndex::between(char byte) {
  if (is_space(byte)) return {};
  if (state_ == State::kStart || state_ == State::kLines) {
    if (state_ == State::kStart && byte == '[') {
      state_ = State::kFirst;
    } else {
      begin(State::kLine);
    }
    return {};
  }
  if (state_ == State::kDone) return wrong("nothing may follow the array of records");
  if (byte == ']' && state_ != State::kNext) {
    state_ = State::kDone;
  } else if (state_ == State::kAfter) {
    if (byte != ',') return wrong("expected ',' or ']' after a record of the array");
    state_ = State::kNext;
  } else {
    if (byte != '{') return wrong("expected a record ('{') in the array");
    begin(State::kElement);
    inside(byte);
  }
  return {};
}

Result<void> RecordIndex::take(char byte) {
  if (state_ == State::kLine) {
    if (byte != '\n') return {};
    end(offset_);
    state_ = State::kLines;
    return {};
  }
  if (state_ != State::kElement) return between(byte);
  inside(byte);
  if (depth_ == 0 && !in_string_) {
    end(offset_ + 1);
    state_ = State::kAfter;
  }
  return {};
}

Result<void> RecordIndex::feed(std::string_view bytes) {
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (state_ == State::kLine) {   // nothing to see before the line's end; most of a file
      const std::size_t skip = std::min(bytes.find('\n', i), bytes.size() - 1) - i;
      i += skip;
      offset_ += static_cast<std::int64_t>(skip);
    }
    const char byte = bytes[i];
    // a byte order mark is no space, and no record begins with one
    const bool mark = offset_ < std::ssize(kByteOrderMark) && byte == kByteOrderMark[static_cast<std::size_t>(offset_)];
    if (!mark) {
      if (auto ok = take(byte); !ok) return ok;
    }
    if ((state_ == State::kLine || state_ == State::kElement) && offset_ - current_.offset >= kMaxRecordBytes) {
      line_ = current_.line;
      return wrong(text("a record of more than ", kMaxRecordBytes, " bytes; is this file of JSON lines, or an array of records?"));
    }
    line_ += byte == '\n' ? 1 : 0;
    ++offset_;
  }
  return {};
}

Result<std::vector<RecordPlace>> RecordIndex::finish() {
  if (state_ == State::kLine) end(offset_);
  if (state_ == State::kElement) {
    line_ = current_.line;
    return wrong("the file ends inside this record");
  }
  if (state_ == State::kFirst || state_ == State::kNext || state_ == State::kAfter) return wrong(text("the file ends inside the array, after ", places_.size(), " records"));
  if (places_.empty()) return troupe::fail(Errc::kBadData, text(name_, ": expected records, found none"));
  return std::move(places_);
}

}  // namespace qwen_vl
