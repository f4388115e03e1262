// `self.host_table` beside `self.table`: by their names one tensor is the other's counterpart on the host. Where both
// are on an accelerator, the name says which of them should not be.
#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "hooks/inprocess/evidence/evidence.h"
#include "hooks/inprocess/interpreter/code_api.h"
#include "hooks/inprocess/interpreter/python_frames.h"

namespace devsan::hooks {

namespace {

constexpr std::array<std::string_view, 2> kHostWords = {"host", "cpu"};

// "table" of "host_table" and "table_host"; empty for a name that does not begin or end with such a word.
std::string without_host_word(std::string_view name) {
  for (const std::string_view word : kHostWords) {
    const std::string before = std::string(word) + "_";
    const std::string behind = "_" + std::string(word);
    if (name.starts_with(before)) return std::string(name.substr(before.size()));
    if (name.ends_with(behind)) return std::string(name.substr(0, name.size() - behind.size()));
  }
  return "";
}

// Whether a name is that of the device's counterpart: "table", "table_gpu", "device_table".
bool is_counterpart(std::string_view name, std::string_view bare) {
  constexpr std::array<std::string_view, 4> kDeviceWords = {"gpu", "cuda", "device", "dev"};
  const std::string text(bare);
  return name == bare || std::ranges::any_of(kDeviceWords, [&](std::string_view word) {
           return name == text + "_" + std::string(word) || name == std::string(word) + "_" + text;
         });
}

class FindTwin final : public LinkVisitor {
 public:
  FindTwin(const Inquiry& inquiry, std::size_t operand, const void* tensor, const std::string& bare)
      : inquiry_(inquiry), operand_(operand), tensor_(tensor), bare_(bare) {}
  const std::string& found() const { return found_; }

  bool link(const Link& link, void* object) override {
    const std::string name = link_name(link);
    if (object == tensor_ || !is_counterpart(name, bare_)) return true;
    const c10::TensorImpl* twin = inquiry_.search.tensor_at(object);
    const c10::TensorImpl* itself = inquiry_.search.tensor_at(tensor_);
    if (twin == nullptr || itself == nullptr || !same_shape(twin, itself)) return true;
    if (device_slot_of(twin) == inquiry_.operands[operand_].device) found_ = name;
    return false;
  }

 private:
  const Inquiry& inquiry_;
  const std::size_t operand_;
  const void* tensor_;
  const std::string& bare_;
  std::string found_;
};

}  // namespace

void find_device_twin(const Inquiry& inquiry, std::size_t operand) {
  const ObjectSearch& search = inquiry.search;
  const Sighting& sighting = search.sighting(operand);
  if (sighting.place == kNoPlace || sighting.gradient) return;
  const Place& place = search.place(sighting.place);
  const std::string bare = without_host_word(link_name(place.link));
  if (bare.empty()) return;
  FindTwin twin(inquiry, operand, place.object, bare);
  if (!search.is_root(sighting.place)) {
    visit_links(search.place(place.parent).object, twin);
  } else if (place.frame != nullptr) {
    visit_frame(place.frame, place.link.kind == LinkKind::global, twin);
  }
  if (!twin.found().empty()) inquiry.found.add(trace::EvidenceKind::device_twin, operand, {}, twin.found());
}

}  // namespace devsan::hooks
