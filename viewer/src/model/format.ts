// Numbers and places in words.

import type { Operand, Place } from "./report";

const UNITS = ["KiB", "MiB", "GiB", "TiB", "PiB"];

export function bytesText(bytes: number): string {
  if (Math.abs(bytes) < 1024) return `${Math.round(bytes)} ${Math.round(bytes) === 1 ? "byte" : "bytes"}`;
  let value = bytes;
  let unit = -1;
  while (Math.abs(value) >= 1024 && unit < UNITS.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return `${value.toFixed(1)} ${UNITS[unit] ?? ""}`;
}

export function secondsText(seconds: number): string {
  if (seconds < 0.001) return `${Math.round(seconds * 1e6)} µs`;
  if (seconds < 1) return `${(seconds * 1000).toFixed(seconds < 0.01 ? 1 : 0)} ms`;
  if (seconds < 90) return `${seconds.toFixed(1)} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ${Math.floor(seconds % 60)} s`;
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

// A moment of a run, as exact as `step`, the distance between moments that must look different.
export function momentText(seconds: number, step: number): string {
  const digits = Math.min(6, Math.max(0, Math.ceil(-Math.log10(step))));
  if (seconds < 120 || step < 1) return `${seconds.toFixed(digits)} s`;
  const whole = Math.round(seconds);
  const pair = (number: number) => String(number).padStart(2, "0");
  const hours = Math.floor(whole / 3600);
  return `${hours > 0 ? `${hours}:` : ""}${pair(Math.floor(whole / 60) % 60)}:${pair(whole % 60)}`;
}

export function percentText(share: number): string {
  return `${Math.round(share * 100)} %`;
}

export function counted(count: number, noun: string): string {
  return `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;
}

export function times(count: number): string {
  return count === 1 ? "once" : `${count.toLocaleString("en")} times`;
}

export function sentence(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;
}

export function baseName(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1);
}

// The end of a path, from the package on where it is installed code.
export function shortPath(path: string): string {
  const installed = path.lastIndexOf("/site-packages/");
  if (installed >= 0) return path.slice(installed + "/site-packages/".length);
  return path.split("/").slice(-2).join("/");
}

export function placeText(place: Pick<Place, "file" | "line">): string {
  return place.line > 0 ? `${baseName(place.file)}:${place.line}` : baseName(place.file);
}

// "ranks 0, 2-5"
export function rankRanges(ranks: number[]): string {
  const sorted = [...ranks].sort((a, b) => a - b);
  const ranges: string[] = [];
  for (let i = 0; i < sorted.length; ) {
    let last = i;
    while (last + 1 < sorted.length && (sorted[last + 1] ?? 0) <= (sorted[last] ?? 0) + 1) last += 1;
    const [from, to] = [sorted[i] ?? 0, sorted[last] ?? 0];
    ranges.push(from === to ? `${from}` : to === from + 1 ? `${from}, ${to}` : `${from}-${to}`);
    i = last + 1;
  }
  return ranges.join(", ");
}

// How many there are, where it would take more than `most` letters to name them.
export function ranksText(ranks: number[], most = 60): string {
  if (ranks.length === 0) return "";
  const names = rankRanges(ranks);
  if (names.length > most) return `${ranks.length.toLocaleString("en")} ranks`;
  return `${ranks.length === 1 ? "rank" : "ranks"} ${names}`;
}

export function shapeText(operand: Operand): string {
  if (operand.generator === true) return "generator";
  if (operand.device_argument === true) return "device argument";
  if (operand.shape === null) return "";
  return `[${operand.shape.join(", ")}${(operand.hidden_dims ?? 0) > 0 ? ", …" : ""}]`;
}

export function operandName(operand: Operand): string {
  return operand.name ?? operand.text ?? operand.arg;
}

export function clockText(time: string | null): string {
  return time === null ? "" : time.replace("T", " ").replace("Z", " UTC");
}
