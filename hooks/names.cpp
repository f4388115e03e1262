#include "hooks/names.h"

#include <array>
#include <new>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "hooks/code_table.h"
#include "hooks/object_graph.h"
#include "hooks/python_frames.h"
#include "hooks/runtime.h"

namespace devsan::hooks {

namespace {

constexpr std::size_t kMaxObjects = 60000;
constexpr int kMaxFrames = 24;
constexpr unsigned kMaxDepth = 12;

// An object on the way to an operand, and the link that led to it from `parent` (an index; itself for a root).
struct Place {
  void* object;
  Link link;
  std::uint32_t parent;
  std::uint32_t depth;
};

class Search final : public LinkVisitor {
 public:
  Search(std::span<trace::OperandRecord> records, std::span<const OperandIdentity> identities)
      : records_(records), identities_(identities) {
    places_.reserve(1024);
    for (std::size_t k = 0; k < records_.size(); ++k) {
      const bool searched = identities_[k].object != nullptr || identities_[k].tensor != nullptr;
      if (searched && (records_[k].flags & trace::kWrappedNumber) == 0) ++missing_;
    }
  }

  bool done() const { return missing_ == 0 || places_.size() >= kMaxObjects; }

  // Frames in the order in which their names are preferred.
  void add_roots(const void* frame, bool globals) {
    current_ = kRoot;
    if (!done()) visit_frame(frame, globals, *this);
  }

  // Everything that the roots so far lead to.
  void follow() {
    for (; followed_ < places_.size() && !done(); ++followed_) {
      if (places_[followed_].depth >= kMaxDepth) continue;
      current_ = followed_;
      visit_links(places_[followed_].object, *this);
    }
  }

  bool link(const Link& link, void* object) override {
    if (!seen_.insert(object).second) return !done();
    const std::uint32_t depth = current_ == kRoot ? 0 : places_[current_].depth + 1;
    const auto self = static_cast<std::uint32_t>(places_.size());
    places_.push_back({object, link, current_ == kRoot ? self : current_, depth});
    for (std::size_t k = 0; k < records_.size(); ++k) {
      if (records_[k].name != trace::StringId::none) continue;
      if (identities_[k].object == object) {
        found(k, self, "");
      } else if (is_gradient(identities_[k].tensor, object)) {
        found(k, self, ".grad");
      }
    }
    return !done();
  }

 private:
  static constexpr std::uint32_t kRoot = ~std::uint32_t{0};

  void found(std::size_t operand, std::uint32_t place, const char* suffix) {
    const std::string name = path_to(place) + suffix;
    records_[operand].name = runtime.recorder->intern_string(name);
    const bool parameter = *suffix == 0 && type_name(places_[place].object) == "Parameter";
    records_[operand].name_kind = parameter      ? trace::NameKind::parameter
                                  : *suffix != 0 ? trace::NameKind::attribute
                                                 : kind_of(places_[place].link.kind);
    --missing_;
  }

  static trace::NameKind kind_of(LinkKind kind) {
    switch (kind) {
      case LinkKind::parameter:
        return trace::NameKind::parameter;
      case LinkKind::buffer:
        return trace::NameKind::buffer;
      case LinkKind::local:
      case LinkKind::global:
        return trace::NameKind::local;
      case LinkKind::attribute:
      case LinkKind::index:
      case LinkKind::key:
      case LinkKind::gradient:
        return trace::NameKind::attribute;
    }
    return trace::NameKind::unknown;
  }

  std::string path_to(std::uint32_t place) const {
    const Place& at = places_[place];
    std::string path = at.parent == place ? std::string() : path_to(at.parent);
    char buffer[256];
    const std::string name(text_of(at.link.name, buffer, sizeof buffer));
    switch (at.link.kind) {
      case LinkKind::index:
        return path + "[" + std::to_string(at.link.index) + "]";
      case LinkKind::key:
        return path + (at.link.name != nullptr ? "['" + name + "']" : "[...]");
      case LinkKind::gradient:
        return path + ".grad";
      case LinkKind::local:
      case LinkKind::global:
        return name;
      case LinkKind::attribute:
      case LinkKind::parameter:
      case LinkKind::buffer:
        break;
    }
    const bool number = !name.empty() && name.find_first_not_of("0123456789") == name.npos;
    return number ? path + "[" + name + "]" : path + "." + name;  // children of a Sequential are numbered
  }

  // Where a tensor's Python object keeps its TensorImpl differs between releases of torch; the operands tell, since of
  // them both are known.
  const c10::TensorImpl* tensor_of(const void* object) {
    if (tensor_offset_ == 0) {
      tensor_offset_ = -1;
      for (const OperandIdentity& known : identities_) {
        if (known.object == nullptr || known.tensor == nullptr) continue;
        for (std::ptrdiff_t offset = 16; offset <= 32; offset += 8) {
          if (field<const void*>(known.object, offset) == known.tensor) tensor_offset_ = offset;
        }
        if (tensor_offset_ < 0) continue;
        tensor_type_base_ = base_tensor_type(known.object);
        break;
      }
    }
    if (tensor_offset_ < 0 || base_tensor_type(object) != tensor_type_base_) return nullptr;
    return field<const c10::TensorImpl*>(object, tensor_offset_);
  }

  // torch._C.TensorBase, the type below all tensors, that defines the layout.
  static const void* base_tensor_type(const void* object) {
    const void* type = type_of(object);
    for (int depth = 0; type != nullptr && depth < 32; ++depth) {
      const std::string_view name = field<const char*>(type, kTypeName);
      if (name == "torch._C.TensorBase" || name == "torch._C._TensorBase") return type;
      type = field<const void*>(type, kTypeBase);
    }
    return nullptr;
  }

  bool is_gradient(const c10::TensorImpl* operand, const void* object) {
    if (operand == nullptr) return false;
    const c10::TensorImpl* tensor = tensor_of(object);
    return tensor != nullptr && tensor != operand && tensor->grad().unsafeGetTensorImpl() == operand;
  }

  std::span<trace::OperandRecord> records_;
  std::span<const OperandIdentity> identities_;
  std::vector<Place> places_;
  std::unordered_set<const void*> seen_;
  std::size_t missing_ = 0;
  std::uint32_t current_ = kRoot;
  std::uint32_t followed_ = 0;
  std::ptrdiff_t tensor_offset_ = 0;
  const void* tensor_type_base_ = nullptr;
};

void add_frames(Search& search, const void* innermost, bool torch_frames) {
  const void* frame = innermost;
  for (int depth = 0; frame != nullptr && depth < kMaxFrames; ++depth, frame = frame_previous(frame)) {
    const std::uint32_t marks = code_table.marks(frame_code(frame));
    if ((marks & kNoCode) == 0 && ((marks & kTorchCode) != 0) == torch_frames) search.add_roots(frame, false);
  }
}

// The globals of the innermost module that is the program's own.
void add_globals(Search& search, const void* innermost) {
  for (const void* frame = innermost; frame != nullptr; frame = frame_previous(frame)) {
    const std::uint32_t marks = code_table.marks(frame_code(frame));
    if ((marks & (kNoCode | kTorchCode | kLibraryCode)) != 0) continue;
    search.add_roots(frame, true);
    return;
  }
}

}  // namespace

void find_names(const void* thread, std::span<trace::OperandRecord> records,
                std::span<const OperandIdentity> identities) noexcept {
  try {
    Search search(records, identities);
    const void* innermost = current_frame(thread);
    // The program's own names are the ones a person knows; torch's come last, for what only its frames hold.
    add_frames(search, innermost, false);
    add_globals(search, innermost);
    search.follow();
    add_frames(search, innermost, true);
    search.follow();
  } catch (const std::bad_alloc&) {  // names are worth no failure
  }
}

}  // namespace devsan::hooks
