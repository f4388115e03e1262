// The rows of a long list that are in sight. The list has rows of one height and scrolls by itself.

import { elementScroll, observeElementOffset, observeElementRect, Virtualizer, type VirtualItem } from "@tanstack/virtual-core";
import type { RefObject } from "preact";
import { useLayoutEffect, useReducer, useState } from "preact/hooks";

interface Rows {
  items: VirtualItem[];
  height: number;
  show: (index: number) => void;
}

export function useVirtual<T extends HTMLElement>(list: RefObject<T | null>, count: number, rowHeight: number): Rows {
  const [, redraw] = useReducer((drawn: number) => drawn + 1, 0);
  const options = {
    count,
    getScrollElement: () => list.current,
    estimateSize: () => rowHeight,
    overscan: 6,
    observeElementRect,
    observeElementOffset,
    scrollToFn: elementScroll,
    onChange: () => redraw(undefined),
  };
  const [virtual] = useState(() => new Virtualizer<T, Element>(options));
  virtual.setOptions(options);
  useLayoutEffect(() => virtual._didMount(), [virtual]);
  useLayoutEffect(() => virtual._willUpdate());
  return {
    items: virtual.getVirtualItems(),
    height: virtual.getTotalSize(),
    show: (index) => virtual.scrollToIndex(index, { align: "auto" }),
  };
}
