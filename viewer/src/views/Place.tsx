import { shortPath } from "../model/format";
import type { Place as Position } from "../model/report";

type Properties = Pick<Position, "file" | "line"> & Partial<Pick<Position, "function">>;

export function Place({ place }: { place: Properties }) {
  return (
    <span class="place" title={place.file}>
      <span class="path">{shortPath(place.file)}</span>
      {place.line > 0 && <span class="line">:{place.line}</span>}
      {place.function && <span class="function"> in {place.function}</span>}
    </span>
  );
}
