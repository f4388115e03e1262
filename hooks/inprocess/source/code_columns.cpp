#include "hooks/inprocess/source/code_columns.h"

#include <optional>
#include <string_view>

#include "hooks/inprocess/interpreter/code_api.h"
#include "hooks/inprocess/interpreter/python_api.h"
#include "hooks/inprocess/source/python_extents.h"
#include "hooks/inprocess/source/source_files.h"

namespace devsan::hooks {

namespace {

// Of CPython 3.10, where each takes two bytes.
enum Opcode : unsigned char {
  kDuplicate = 4,
  kReadSubscript = 25,
  kStoreSubscript = 60,
  kCallFunction = 131,
  kCallByKeyword = 141,
  kCallUnpacked = 142,
  kCallMethod = 161,
};
constexpr int kMaxStatementBytes = 2048;

std::optional<SourcePart> part_of(unsigned char opcode) noexcept {
  switch (opcode) {
    case kCallFunction:
    case kCallByKeyword:
    case kCallUnpacked:
    case kCallMethod:
      return SourcePart::call;
    case kReadSubscript:
      return SourcePart::read;
    case kStoreSubscript:
      return SourcePart::store;
    default:
      return std::nullopt;
  }
}

// The byte code of one code object.
class Bytes {
 public:
  explicit Bytes(const void* code) noexcept : code_(const_cast<void*>(code)) {
    static const std::ptrdiff_t offset = code_member("co_code");
    const void* bytes = offset != 0 ? field<const void*>(code, offset) : nullptr;
    if (bytes == nullptr || !is_bytes(bytes)) return;
    text_ = static_cast<const unsigned char*>(bytes) + kBytesText;
    size_ = static_cast<int>(size_of(bytes));
  }
  bool has(int at) const noexcept { return at >= 0 && at + 1 < size_; }
  unsigned char opcode(int at) const noexcept { return text_[at]; }
  std::optional<SourcePart> part(int at) const noexcept { return has(at) ? part_of(opcode(at)) : std::nullopt; }
  // A `with` block that ends calls __exit__(None, None, None).
  bool ends_block(int at) const noexcept {
    return opcode(at) == kCallFunction && text_[at + 1] == 3 && has(at - 2) && opcode(at - 2) == kDuplicate;
  }
  bool within(int at, const Statement& statement) const noexcept {
    if (!has(at)) return false;
    const int line = python.PyCode_Addr2Line(code_, at);
    return line >= statement.first && line <= statement.last;
  }

 private:
  void* code_;
  const unsigned char* text_ = nullptr;
  int size_ = 0;
};

// Which of the statement's parts of its kind an instruction is of, by all around it that belong to the statement.
struct Rank {
  int rank = 0;
  int count = 0;
};
Rank rank_of(const Bytes& bytes, int instruction, SourcePart part, const Statement& statement) noexcept {
  Rank found;
  int begin = instruction;
  while (begin > instruction - kMaxStatementBytes && bytes.within(begin - 2, statement)) {
    begin -= 2;
    if (bytes.part(begin) == part) ++found.rank;
  }
  found.count = found.rank;
  int end = instruction;
  for (; end < instruction + kMaxStatementBytes && bytes.within(end, statement); end += 2) {
    if (bytes.part(end) == part) ++found.count;
  }
  return end - begin < kMaxStatementBytes ? found : Rank();
}

Caller caller_of(const void* code) noexcept {
  char buffer[256];
  const std::string_view name = text_of(field<const void*>(code, code_members.name), buffer, sizeof buffer);
  if (!name.starts_with('<') || name == "<module>") return Caller::function;
  return name == "<lambda>" ? Caller::lambda : Caller::comprehension;
}

}  // namespace

CodeLocation with_columns(const CodeLocation& at, trace::StringId file, const void* code, int instruction) noexcept {
  const Bytes bytes(code);
  const auto part = bytes.part(instruction);
  if (!part || bytes.ends_block(instruction)) return at;
  SourceFiles files;
  const std::string_view text = files.whole(file);
  const auto statement = statement_around(text, at.line);
  if (!statement) return at;
  const Rank rank = rank_of(bytes, instruction, *part, *statement);
  const auto extent = extent_of(text, *statement, caller_of(code), *part, rank.rank, rank.count);
  if (!extent || extent->line != at.line) return at;
  return {extent->line, extent->end_line, extent->column, extent->end_column};
}

}  // namespace devsan::hooks
