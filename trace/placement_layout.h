// The bytes of those records of a trace file that tell where a program keeps its tensors, and of the rules that it was
// given about that: a part of the contract that trace/file_layout.h begins, with the same rules.
#pragma once

#include <cstddef>
#include <cstdint>

#include "trace/file_layout.h"

namespace devsan::trace {

// What a tensor is to the object that keeps it. A module is no tensor: its record tells the class, and no device.
enum class PlaceKind : std::uint8_t {
  none = 0,
#define DEVSAN_PLACE(enumerator, number, name) enumerator = number,
#include "trace/place_kinds.def"
#undef DEVSAN_PLACE
};

enum PlacementFlags : std::uint8_t {
  kPlacePinned = 1,    // memory of the host that is pinned
  kPlaceEmpty = 2,     // it has no elements: a placeholder says nothing of where something is
  kPlaceManaged = 4,   // something moves what its owner keeps: an offloading hook, a device map, sharding
  kPlaceScalar = 8,    // it has no dimensions
  kPlaceTrained = 16,  // autograd computes its gradient
  kPlaceAsked = 32     // a line has asked for it to be on the device that it was on already
};

// Where one tensor is, from here on until a later record names it again. The first one of a number names it.
struct PlacementRecord {
  std::uint32_t number;  // of its name in this process, from 1
  StringId owner;        // "layers.0.attention"; of an optimizer's state the parameter that it is about
  StringId leaf;         // "weight", "exp_avg"
  StringId type;         // the class of what keeps it
  LineageId lineage;     // none where its history is not known
  PlaceKind kind;
  DeviceSlot device;
  std::uint8_t flags;  // PlacementFlags
  std::uint8_t reserved;
};
static_assert(sizeof(PlacementRecord) == 24);

// `in_step`: before the backward of a step has ended, at what is first used or was moved, or where an exception left.
enum class LookedAt : std::uint8_t { none = 0, backward_end = 1, interpreter_end = 2, in_step = 3 };

// One look at all of them; those that are where they were are left out. `count` of PlacementRecord follow.
struct PlacementsPayload {
  std::int64_t time_ns;
  std::uint32_t step;
  std::uint32_t seen;  // tensors that the look came to
  LookedAt when;
  std::uint8_t truncated;  // 1: there were more than a look comes to
  std::uint16_t count;
  std::uint32_t reserved;
};
static_assert(sizeof(PlacementsPayload) == 24);

// One rule that the process was given, as rules/ writes it for it.
struct RulePayload {
  StringId file;
  std::int32_t line;
  StringId text;
  std::uint32_t reserved;
};
static_assert(sizeof(RulePayload) == 16);

// A library has overwritten an attribute of a module that may say where something belongs.
struct AttributeWritePayload {
  std::int64_t time_ns;
  std::uint32_t step;
  StringId type;  // the module's class
  StringId name;
  StringId old_value;
  StringId new_value;
  StringId class_file;      // where the class's constructor is; none where it has none
  std::int32_t class_line;  // of its `def`
  std::uint32_t reserved;
  Position first;  // who was seen to write it first; file none: nobody was
  Position last;   // the library
};
static_assert(sizeof(AttributeWritePayload) == 88);

// What an attribute of a library's object says of where the object's tensors belong, from here on until a later record
// of the same owner and name.
struct SettingPayload {
  std::int64_t time_ns;
  std::uint32_t step;
  StringId owner;  // "engine.optimizer", as it is in placements
  StringId type;   // its class
  StringId name;   // "offload_optimizer", "subgroup_to_device[3]"
  StringId value;  // "1" for True, "cpu"; of a set how many it has
  std::uint32_t reserved;
};
static_assert(sizeof(SettingPayload) == 32);

}  // namespace devsan::trace
