int sibling(void) {
  return WHICH;
}
