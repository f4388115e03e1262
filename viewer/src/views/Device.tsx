// The colour of a device is the same in the whole page; its name always stands there, too.
const COLOURS = 6;

export function deviceClass(device: string | null): string {
  if (device === null || device === "unknown") return "device none";
  if (device === "cpu" || device === "host") return "device cpu";
  const index = Number(/:(\d+)$/.exec(device)?.[1] ?? 0);
  return `device gpu${index % COLOURS}`;
}

export function Device({ name }: { name: string | null }) {
  return <span class={deviceClass(name)}>{name ?? "unknown"}</span>;
}
