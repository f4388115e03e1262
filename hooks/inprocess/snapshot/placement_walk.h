// Comes to every tensor that the program's modules, optimizers and other objects keep, and knows what each is called:
// from the variables of all threads and of the main module, through modules all the way, through other objects a few
// steps.
//
// Runs no code of the program, keeps no reference, and looks at a bounded number of objects. With the GIL held
// (PythonSection). May throw std::bad_alloc.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "hooks/inprocess/bridge/tensor_facts.h"
#include "hooks/inprocess/snapshot/object_graph.h"
#include "hooks/inprocess/snapshot/tensor_layout.h"
#include "trace/placement_layout.h"

namespace devsan::hooks {

// A tensor, as the walk comes to it. What is called a name is made on demand, by PlacementWalk.
struct PlacedTensor {
  const c10::TensorImpl* tensor = nullptr;  // none where it is a module itself
  std::uint64_t key = 0;                    // of its name: the same in every walk
  trace::PlaceKind kind = trace::PlaceKind::none;
  bool managed = false;      // what keeps it, or keeps that, has an offloading hook or a device map
  std::uint32_t keeper = 0;  // the object that keeps it
  Link link{};               // from there
};

// What an attribute of an object says of where the object's tensors belong.
struct PlacedSetting {
  std::uint64_t key = 0;  // of its name: the same in every walk
  std::uint32_t keeper = 0;
  std::string name;  // "offload_optimizer", "subgroup_to_device[3]"
  std::string value;
};

class PlacedTensorVisitor {
 public:
  // False ends the walk.
  virtual bool placed(const PlacedTensor& tensor) = 0;
  virtual void said(const PlacedSetting& setting) = 0;

 protected:
  ~PlacedTensorVisitor() = default;
};

// What modules were called by earlier walks: they keep the name that they were first found by, from whichever function
// they are reached later. Addresses alone, which are never followed: an object that takes the place of one that died
// may inherit its name.
class RootNames {
 public:
  const std::string& name_for(const void* module, const std::string& found);
  // Not one of another type that was there before.
  bool knows(const void* module) const;
  void clear() { names_.clear(); }

 private:
  static constexpr std::size_t kMaxNames = 512;
  struct Known {
    const void* type;
    std::string name;
  };
  std::unordered_map<const void*, Known> names_;
};

class PlacementWalk {
 public:
  PlacementWalk(PlacedTensorVisitor& visitor, RootNames& names) : visitor_(visitor), names_(names) {}

  // `thread` is the calling one's PyThreadState. `left`: the innermost frame of an exception that was left; may be
  // null. `outside_modules`: without the functions that run in the call of a module, where the modules in it have other
  // names (`self`, `layer`) than at the end of a step.
  void run(const void* thread, const void* left, bool outside_modules);

  bool truncated() const { return truncated_; }
  std::string owner_of(const PlacedTensor& tensor) const;
  std::string leaf_of(const PlacedTensor& tensor) const;
  std::string_view type_of_owner(const PlacedTensor& tensor) const { return type_of_keeper(tensor.keeper); }
  std::string_view type_of_keeper(std::uint32_t keeper) const;
  std::string path_of(std::uint32_t node) const;

 private:
  enum class What : std::uint8_t { module, optimizer, container, with_settings, other };
  struct Node {
    const void* object;
    std::uint32_t parent;  // itself for a root
    What what;
    std::uint8_t steps;  // since the last module or variable
    bool managed;
    Link link;
    std::uint64_t key;
    std::string root;  // the name of one that is named by itself
  };
  // What a parameter is called, for the state that an optimizer keeps of it.
  struct Parameter {
    std::uint32_t keeper;
    Link link;
    std::uint64_t key;
  };
  struct Pending {
    std::uint32_t node;
    const void* parameter;
    const void* state;
  };

  class Variables;
  class Members;
  class Settings;

  void add_main_module();
  void add_frames(const void* innermost);
  void add_variable(const Link& link, void* object);
  void follow();
  void visit_module(std::uint32_t node);
  void read_attributes(std::uint32_t node, const Members& members);
  void visit_state(std::uint32_t node, const void* dict);
  void visit_states();
  void member(std::uint32_t node, const Link& link, void* object);
  bool add_node(std::uint32_t parent, const Link& link, void* object, What what, std::uint8_t steps);
  void place(std::uint32_t node, const Link& link, const void* object, const c10::TensorImpl* tensor,
             trace::PlaceKind kind);
  What what_is(const void* object);
  bool is_worth_following(const void* object) const;
  std::string owner_of_state(const PlacedTensor& tensor) const;

  PlacedTensorVisitor& visitor_;
  RootNames& names_;
  std::vector<Node> nodes_;
  std::vector<Pending> states_;
  std::unordered_map<const void*, bool> seen_;
  std::unordered_map<const void*, Parameter> parameters_;
  std::unordered_map<const void*, What> types_;
  std::uint32_t followed_ = 0;
  std::uint32_t others_ = 0;  // objects that are neither modules nor optimizers
  bool outside_modules_ = false;
  bool truncated_ = false;
  bool ended_ = false;
  TensorLayout layout_;
};

}  // namespace devsan::hooks
