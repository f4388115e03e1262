#include "report/wording/host_access_text.h"

#include <cxxabi.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <memory>

#include "report/model/frames.h"

namespace devsan::report {
namespace {

std::optional<std::uint64_t> number_at(std::string_view text, std::size_t at) {
  std::uint64_t value = 0;
  const char* end = text.data() + text.size();
  if (at >= text.size() || std::from_chars(text.data() + at, end, value).ec != std::errc()) return std::nullopt;
  return value;
}

// "read 16 of 4096", or "read" alone.
HostAccess access_from(std::string_view text) {
  constexpr std::string_view kOf = " of ";
  HostAccess access;
  access.writes = text.starts_with("write");
  const std::size_t space = text.find(' ');
  const std::size_t of = text.find(kOf);
  if (space == text.npos || of == text.npos) return access;
  access.byte = number_at(text, space + 1);
  access.bytes = number_at(text, of + kOf.size());
  return access;
}

bool writes(const Finding& finding) {
  return finding.host_access && finding.host_access->writes;
}

std::string whose_memory(const Finding& finding) {
  return finding.operands.empty() ? "device memory that has been given back"
                                  : "memory of " + finding.operands.front().device;
}

// "read_first (libreader.so)": the outermost frame is that of the program where the C library works for it.
std::string code_text(const Finding& finding) {
  if (finding.native_stack.empty()) return "";
  const NativeFrame& frame = finding.native_stack.back();
  const std::string module(base_name(frame.module));
  if (frame.symbol.empty()) return "code of " + module;
  return frame.symbol.substr(0, frame.symbol.find('(')) + " (" + module + ")";
}

}  // namespace

std::optional<HostAccess> host_access_of(const trace::TraceFile& trace, const trace::Meeting& meeting) {
  const auto found =
      std::ranges::find(meeting.evidence, trace::EvidenceKind::host_access, &trace::EvidenceRecord::kind);
  if (found == meeting.evidence.end()) return std::nullopt;
  return access_from(trace.string(found->text));
}

std::string host_access_headline(const Finding& finding) {
  const std::string code = code_text(finding);
  return (code.empty() ? "the host" : code) + (writes(finding) ? " writes " : " reads ") + whose_memory(finding) +
         (code.empty() ? "" : " on the host");
}

void explain_host_access(Finding& finding) {
  for (Operand& operand : finding.operands) {
    operand.odd = true;
    if (operand.arg.empty()) operand.arg = "tensor";
  }
  if (!finding.where) return;
  const Frame& where = *finding.where;
  std::string why = "a device pointer is followed on the host here";
  if (!finding.op.empty()) why += ", in " + finding.op;
  if (const auto& access = finding.host_access; access && access->byte && access->bytes) {
    why += ": byte " + std::to_string(*access->byte) + " of " + std::to_string(*access->bytes) +
           " of the tensor's storage was to be " + (access->writes ? "written" : "read");
  }
  why += ". On hardware this ends the process by SIGSEGV, too";
  finding.root_cause = RootCause{where.file, where.line, where.function, "", why};
  finding.fix = {where.file, where.line,
                 writes(finding)
                     ? "let the host's code write into a tensor on the CPU, and copy that to the device"
                     : "give the host's code a copy on the CPU (`.cpu()`), or let a kernel of the device read it"};
}

std::string readable_symbol(std::string_view symbol) {
  const std::string text(symbol);
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> readable(abi::__cxa_demangle(text.c_str(), nullptr, nullptr, &status),
                                                        &std::free);
  return status == 0 && readable != nullptr ? readable.get() : text;
}

}  // namespace devsan::report
