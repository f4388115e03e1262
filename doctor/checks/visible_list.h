// CUDA_VISIBLE_DEVICES, read as CUDA and torch read it: up to the first entry that names no GPU.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "doctor/driver/driver.h"

namespace devsan::doctor {

struct VisibleList {
  std::size_t entries = 0;
  std::size_t taken = 0;   // how many of them CUDA takes
  std::string stopped_at;  // the entry that ends the list
  std::string why;         // "is out of range: there are 2 GPUs"
  std::string doubled;     // an entry that stands there twice: then no GPU is visible at all
  bool by_index = false;   // the first entry is a number
  bool hides_all = false;  // empty, or begins with -1: a way to hide every GPU on purpose
};

// `gpus` are those of the machine; empty where they are not known, and then only the form is judged.
VisibleList read_visible_list(std::string_view text, const std::vector<Gpu>& gpus);

}  // namespace devsan::doctor
