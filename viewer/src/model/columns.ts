// Columns of the report are byte offsets into UTF-8; strings here are UTF-16.

const encoder = new TextEncoder();

export function charOffset(text: string, byte: number): number {
  let bytes = 0;
  let chars = 0;
  for (const letter of text) {
    if (bytes >= byte) break;
    bytes += encoder.encode(letter).length;
    chars += letter.length;
  }
  return chars;
}
