#include "report/host_access_text.h"

#include <cxxabi.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "report/frames.h"

namespace devsan::report {
namespace {

// What the process wrote down of the access: "read 16 of 4096".
std::string access_of(const Finding& finding) {
  const auto find_in = [](const std::vector<Evidence>& all) {
    const auto found = std::ranges::find(all, trace::EvidenceKind::host_access, &Evidence::kind);
    return found == all.end() ? std::string() : found->text;
  };
  for (const Operand& operand : finding.operands) {
    if (std::string text = find_in(operand.evidence); !text.empty()) return text;
  }
  return find_in(finding.evidence);
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

std::string host_access_headline(const Finding& finding) {
  const std::string code = code_text(finding);
  const bool writes = access_of(finding).starts_with("write");
  return (code.empty() ? "the host" : code) + (writes ? " writes " : " reads ") + whose_memory(finding) +
         (code.empty() ? "" : " on the host");
}

void explain_host_access(Finding& finding) {
  for (Operand& operand : finding.operands) {
    operand.odd = true;
    if (operand.arg.empty()) operand.arg = "tensor";
  }
  if (!finding.where) return;
  const Frame& where = *finding.where;
  const std::string access = access_of(finding);
  const bool writes = access.starts_with("write");
  std::string why = "a device pointer is followed on the host here";
  if (!finding.op.empty()) why += ", in " + finding.op;
  if (const auto at = access.find(' '); at != access.npos) {
    why += ": byte" + access.substr(at) + " of the tensor's storage was to be " + (writes ? "written" : "read");
  }
  why += ". On hardware this ends the process by SIGSEGV, too";
  finding.root_cause = {where.file, where.line, where.function, "", why};
  finding.fix = {where.file, where.line,
                 writes ? "let the host's code write into a tensor on the CPU, and copy that to the device"
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
