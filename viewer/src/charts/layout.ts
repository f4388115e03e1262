// What stands left of the charts, names of ranks or numbers of bytes, takes as many pixels in each: equal times are above
// each other.
export const LEFT = 76;
