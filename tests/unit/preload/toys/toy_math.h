// What stands for torch in these tests.
#pragma once

namespace toy {

int add(int a, int b);
int multiply(int a, int b);
int subtract(int a, int b);  // callers keep its address in a table
int divide(int a, int b);    // each caller has one of its own
int scale(int a, int b);     // replaced in its own object on demand only

// A function without a symbol, in a table that is read-only after relocation.
extern int (*const volatile own_table[1])(int a, int b);

inline constexpr int kWrapped = 1000;  // what a wrapper adds to the result
inline constexpr int kOther = 100000;  // what another library's function of the same name adds

}  // namespace toy
