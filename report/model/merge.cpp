#include "report/model/merge.h"

#include <algorithm>
#include <tuple>

#include "report/model/operands.h"

namespace devsan::report {
namespace {

// FNV-1a: the id only has to tell a few hundred findings apart, and to be the same everywhere.
class Hash {
 public:
  Hash& text(std::string_view text) {
    for (const char c : text) byte(static_cast<unsigned char>(c));
    return byte(0);
  }
  Hash& place(const Frame* frame) {
    if (frame == nullptr) return byte(1);
    return text(frame->file).text(std::to_string(frame->line)).text(frame->function);
  }
  std::string digits() const {
    constexpr std::string_view kHex = "0123456789abcdef";
    std::string result;
    for (int shift = 60; shift >= 16; shift -= 4) result += kHex[(value_ >> shift) & 0xf];
    return result;
  }

 private:
  Hash& byte(unsigned char value) {
    value_ = (value_ ^ value) * 0x100000001b3u;
    return *this;
  }
  std::uint64_t value_ = 0xcbf29ce484222325u;
};

// Unhandled before handled, then the earliest, then the lowest rank.
auto precedence(const Finding& finding) {
  return std::tuple(finding.severity, finding.step, finding.rank.value_or(-1), finding.time_ns);
}

}  // namespace

std::string identity_of(const Finding& finding) {
  Hash hash;
  hash.text(name_of(finding.kind)).text(finding.op).place(finding.where ? &*finding.where : nullptr);
  if (!finding.where && !finding.native_stack.empty()) {
    const NativeFrame& native = finding.native_stack.front();
    hash.text(native.symbol).text(native.symbol.empty() ? std::to_string(native.offset) : "");
  }
  if (finding.forward && !finding.forward->empty()) hash.place(&finding.forward->back());
  if (const Operand* odd = first_odd(finding.operands)) {
    hash.text(odd->arg).place(odd->lineage.empty() ? nullptr : &odd->lineage.back().at);
  }
  // One of several ranks that end in the same line tells why the others did.
  if (finding.last_moments && finding.last_moments->ending.named_by_kernel) hash.text("killed for memory");
  if (finding.expectation && !finding.traffic) {
    // Every rank has a device of its own: what kind of one it is tells findings apart.
    const std::string& found = finding.expectation->found;
    hash.text(finding.expectation->sentence).text(found.substr(0, found.find(':')));
  }
  if (finding.kind == Kind::attribute_overwritten && finding.overwriting) {
    hash.text(finding.overwriting->type).text(finding.overwriting->name);
  }
  if (finding.growth && !finding.where) hash.text(finding.growth->device);
  if (finding.traffic && finding.traffic->copy) hash.place(&*finding.traffic->copy);
  return hash.digits();
}

void FindingMerger::add(Finding finding) {
  const auto [found, is_new] = by_id_.try_emplace(finding.id, findings_.size());
  if (is_new) {
    findings_.push_back(std::move(finding));
    return;
  }
  Finding& kept = findings_[found->second];
  if (precedence(finding) < precedence(kept)) std::swap(finding, kept);
  kept.count += finding.count;
  if (kept.traffic && finding.traffic) kept.traffic->bytes += finding.traffic->bytes;
  kept.handled = kept.handled && finding.handled;
  kept.ranks.insert(kept.ranks.end(), finding.ranks.begin(), finding.ranks.end());
}

std::vector<Finding> FindingMerger::take() {
  by_id_.clear();
  for (Finding& finding : findings_) {
    std::ranges::sort(finding.ranks);
    finding.ranks.erase(std::unique(finding.ranks.begin(), finding.ranks.end()), finding.ranks.end());
  }
  std::ranges::stable_sort(findings_, {}, [](const Finding& finding) {
    // A process ends after all else that it did.
    return std::tuple(finding.severity, finding.step, finding.kind == Kind::abnormal_exit, finding.time_ns);
  });
  return std::exchange(findings_, {});
}

}  // namespace devsan::report
