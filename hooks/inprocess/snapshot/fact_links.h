// All that an object holds, by kinds of links: what visit_links() tells, and what only matters to a report: hooks of
// modules, default values, the function of a method, classes, gradients.
//
// With the GIL (PythonSection). Runs no code of the program, keeps no reference.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "hooks/inprocess/snapshot/fact_objects.h"
#include "hooks/inprocess/snapshot/object_graph.h"
#include "trace/fact_layout.h"

namespace devsan::hooks {

struct FactLink {
  trace::FactLinkKind kind = trace::FactLinkKind::unknown;
  const void* name = nullptr;  // a str; null where there is none
  const char* text = nullptr;  // the name where there is no str
  std::int32_t index = -1;
};

// A link as object_graph.h has it, in the terms of the trace; a variable as an attribute.
FactLink as_fact(const Link& link) noexcept;

class FactLinkVisitor {
 public:
  // False ends the visit. `object` is null for a tensor that has no Python object, `tensor` for all but gradients.
  virtual bool link(const FactLink& link, void* object, const c10::TensorImpl* tensor) = 0;

 protected:
  ~FactLinkVisitor() = default;
};

// `kind` and `tensor`: of the object.
void visit_fact_links(void* object, trace::ObjectKind kind, const c10::TensorImpl* tensor, FactDescriber& describer,
                      FactLinkVisitor& visitor);

}  // namespace devsan::hooks
