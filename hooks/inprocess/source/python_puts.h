// What a statement puts into containers, by its text, however Python lets one write it. As python_text.h: what cannot
// be told for sure is not told, no interpreter is needed, and anything may throw std::bad_alloc.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace devsan::hooks {

struct ContainerPut {
  // A path, as "self.kept" and "out['hyp']"; "kept[key]" also of `kept.setdefault(key, [])`, and "self" of `super()`.
  std::string container;
  std::string key;       // as it is written: "key", "'mask'", also of `update(mask=…)`; empty where it has none
  std::string value;     // as it is written; of a comprehension, what it gives in each turn
  bool entries = false;  // not the value itself is put there, but what it has in it: `kept.extend(values)`
};

// `kept.append(v)`, `kept[key] = v`, `kept += [v]`, `kept |= {key: v}`, `kept.update(key=v)`, `queue.put(v)` and their
// kin, also inside of a longer statement. What `total += v` adds up is no container. Whether the object is a list, a
// dictionary or something of the program's own that has such a method is not told by a text.
std::vector<ContainerPut> puts_in(std::string_view statement);

// "self.pages" of "self.pages[name]": what is subscripted.
std::string_view without_subscripts(std::string_view container) noexcept;

// "kept" of "self.kept[key]" and of "kept": the name of what is subscripted.
std::string_view container_name(std::string_view container) noexcept;

// "mask" of "'mask'"; empty for a key that is no string, as a variable.
std::string_view text_of_key(std::string_view key) noexcept;

}  // namespace devsan::hooks
