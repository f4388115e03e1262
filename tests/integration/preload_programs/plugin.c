/* A plugin that uses the toy torch, and brings it along. */
int torch_op(int x);
int torch_nested(int x);
int entry(int x) {
  return torch_op(x);
}
int nested(int x) {
  return torch_nested(x);
}
