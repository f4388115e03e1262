// Looks for the operands among the objects that the Python frames hold, breadth first, so that the shortest way to each
// is found; and notes on the way how the modules it meets are put together.
//
// Runs no code of the program (no attribute protocol, no __eq__, no __repr__), keeps no reference, and looks at a
// bounded number of objects. With the GIL held (PythonSection). May throw std::bad_alloc.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "hooks/inprocess/bridge/tensor_facts.h"
#include "hooks/inprocess/snapshot/object_graph.h"
#include "hooks/inprocess/snapshot/tensor_layout.h"
#include "trace/file_layout.h"

namespace devsan::hooks {

// An object on the way to an operand, and the link that led to it from `parent` (an index; itself for a root).
struct Place {
  void* object;
  Link link;
  std::uint32_t parent;
  std::uint32_t depth;
  const void* frame;  // of a root: whose variable it is
};

inline constexpr std::uint32_t kNoPlace = ~std::uint32_t{0};

// `holder` keeps `object`, by an attribute or as an entry.
struct Holding {
  const void* holder = nullptr;
  Link link{};
  const void* object = nullptr;
};

// How an operand that is reachable was found.
struct Sighting {
  std::uint32_t place = kNoPlace;  // of itself; of the tensor whose gradient it is; or of its base
  bool gradient = false;
  bool base = false;  // it is a temporary, made from the tensor at `place`
};

// Is told of every tensor that a search comes to.
class TensorObserver {
 public:
  virtual void tensor(std::uint32_t place, const c10::TensorImpl* tensor) = 0;

 protected:
  ~TensorObserver() = default;
};

class ObjectSearch final : public LinkVisitor {
 public:
  // `records` and `identities` are those of the same operands, and outlive this; the operator was called at `site`.
  ObjectSearch(std::span<const trace::OperandRecord> records, std::span<const OperandIdentity> identities,
               trace::SiteId site);

  // Looks for no operands, but shows `observer`, which outlives this, all tensors on its way.
  explicit ObjectSearch(TensorObserver& observer) : observer_(&observer) { places_.reserve(1024); }

  // Searches from the frames outwards. The program's own names are the ones a person knows; torch's come last, for what
  // only its frames hold.
  void run(const void* innermost);

  // The same from the frames of `thread`, a PyThreadState, and then from those of the other threads of its interpreter:
  // without the GIL they stand still.
  void run_threads(const void* thread);
  // Those alone, after run().
  void run_other_threads(const void* thread);

  bool complete() const { return !full(); }  // nothing was left out for want of room
  const Sighting& sighting(std::size_t operand) const { return sightings_[operand]; }
  const Place& place(std::uint32_t index) const { return places_[index]; }
  bool is_root(std::uint32_t index) const { return places_[index].parent == index; }
  // "self.layers[3].weight"
  std::string path_to(std::uint32_t place) const;

  // The module that has a tensor among its parameters or buffers; null where none was met.
  const Holding* owner(const void* tensor) const;
  // From `inner`, an owner, outwards: who holds its holder as a child, and so on. Empty for null.
  std::vector<const Holding*> outwards(const Holding* inner) const;
  // Who keeps an operand, or an object that leads on, otherwise than as a child, parameter or buffer: the nearest
  // first.
  std::vector<Holding> holdings_of(const void* object) const;
  std::uint32_t find_place(const void* object) const;
  // The tensor that a Python object is; null where it is none.
  const c10::TensorImpl* tensor_at(const void* object) const { return layout_.tensor_at(object); }

  bool link(const Link& link, void* object) override;

 private:
  static constexpr int kMaxFrames = 24;
  static constexpr std::uint32_t kMaxDepth = 12;
  static constexpr std::size_t kMaxObjects = 60000;
  static constexpr std::size_t kMaxHoldings = 30000;
  static constexpr std::size_t kMaxParents = 4;
  static constexpr std::size_t kMaxOutwards = 32;

  bool full() const { return places_.size() >= kMaxObjects; }
  void add_frames(const void* innermost, bool torch_frames, int limit = kMaxFrames);
  void add_globals(const void* innermost);
  void add_frame(const void* frame, bool globals);
  // Up to objects that deep: those of less depth that were found so far have to come first.
  void follow(std::uint32_t depth = kMaxDepth);
  void note_holding(const Link& link, void* object);
  void look_for_operand(std::size_t operand, std::uint32_t place, void* object, const c10::TensorImpl* tensor);
  // The module among whose children `module` is; null where none was met.
  const Holding* parent_module(const void* module) const;
  void note_parents(std::size_t operand, const trace::Position& here);
  bool is_base(std::size_t operand, const c10::TensorImpl* tensor) const;
  bool is_operand(const void* object) const;

  TensorObserver* observer_ = nullptr;
  std::span<const trace::OperandRecord> records_;
  std::span<const OperandIdentity> identities_;
  std::vector<Sighting> sightings_;
  std::vector<std::array<trace::LineageId, kMaxParents>> parents_;  // the values that a temporary was made from
  std::vector<Place> places_;
  std::unordered_set<const void*> seen_;
  std::unordered_map<const void*, Holding> children_;  // modules that are children of others
  std::unordered_map<const void*, Holding> owned_;     // parameters and buffers
  std::vector<Holding> holdings_;
  std::uint32_t current_ = kNoPlace;
  std::uint32_t followed_ = 0;
  const void* frame_ = nullptr;
  TensorLayout layout_;
};

// What the program calls a link: "weight", "key", the field of a named tuple; empty where it has no name.
std::string link_name(const Link& link);

// "[3]", ".weight", "['key']": a link as it is written behind its holder; a variable's name.
std::string written(const Link& link);

// The link that is written in a certain way: a variable of a frame by its name, or one step from an object.
class WrittenLink final : public LinkVisitor {
 public:
  explicit WrittenLink(std::string_view wanted) : wanted_(wanted) {}
  const Link& found() const { return found_; }
  void* object() const { return object_; }  // borrowed; null where there is no such link
  bool link(const Link& link, void* object) override;

 private:
  const std::string_view wanted_;
  Link found_{};
  void* object_ = nullptr;
};

}  // namespace devsan::hooks
