// A program of LibTorch without Python. What it does is told by its argument.
#include <ATen/TensorOperators.h>
#include <torch/csrc/autograd/generated/variable_factories.h>

#include <cstdlib>
#include <iostream>
#include <string_view>
#include <thread>

namespace {

at::Tensor add_on_two_devices() {
  return torch::ones({3}, at::kMeta) + torch::ones({3});
}

// Runs when everything else has ended.
struct AtExit {
  ~AtExit() { std::cout << "sum at exit " << torch::ones({3}).sum().item<float>() << std::endl; }
};

}  // namespace

int main(int count, char** arguments) {
  const std::string_view what = count > 1 ? arguments[1] : "";
  if (what == "caught") {
    try {
      add_on_two_devices();
    } catch (const c10::Error& error) {
      std::cout << error.what_without_backtrace() << std::endl;
    }
    return 3;
  }
  if (what == "thread") std::thread(add_on_two_devices).join();
  if (what == "noexcept") []() noexcept { add_on_two_devices(); }();
  if (what == "exit") {
    static AtExit at_exit;
    return static_cast<int>(torch::ones({4}).sum().item<float>());
  }
  add_on_two_devices();
}
