// What a piece of source says about devices, read off its nodes.
#pragma once

#include "report/program/node.h"

namespace devsan::report::ranking {

struct Traits {
  bool moves = false;              // .to(…), .cuda()
  bool gives_device = false;       // device=…
  bool to_host = false;            // .cpu(), .numpy(), "cpu"
  bool names_accelerator = false;  // .cuda(), "cuda:1"
  bool speaks_of_device = false;   // a name with "device" in it
  bool copies = false;             // deepcopy, clone
  bool converts = false;           // from_numpy, as_tensor, load
  bool makes = false;              // torch.zeros(…)
  bool makes_alike = false;        // zeros_like, new_zeros
  bool makes_layer = false;        // nn.Linear(…)
  bool keeps_dtype = false;        // dtype, type_as
  bool registers = false;          // register_buffer, Parameter
  bool tests = false;              // is None, isinstance, in

  bool places() const { return moves || gives_device || makes_alike; }
};

// Of the node and all in it; of a compound statement its header alone.
Traits traits_of(program::Node node);
// Of what begins in this line.
Traits traits_of_line(const program::SourceFile& file, int line);

}  // namespace devsan::report::ranking
