import type { RefObject } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { eachPhase, eachWait, moved, PHASES, spanBetween, zoomed, type Span, type Steps, type Waits } from "../model/timeline";
import { momentText } from "../model/format";
import { color } from "./colors";
import { LEFT as NAMES } from "./layout";

export interface Row {
  index: number; // of the process
  name: string;
  shortName: string;
  steps: Steps;
  waits: Waits | null;
  failed: number | null; // seconds since the run began
}

interface Properties {
  rows: Row[];
  whole: Span;
  span: Span;
  chosen: number;
  choose: (index: number) => void;
  onZoom: (span: Span) => void;
}

const ROOM = 420;
const AXIS = 22;
const TOP = 6; // for half of the first name

function rowHeight(rows: number): number {
  return Math.max(2, Math.min(24, Math.floor(ROOM / Math.max(rows, 1))));
}

function tickSize(span: Span, width: number): number {
  const least = ((span.to - span.from) * 90) / Math.max(width, 1);
  const power = 10 ** Math.floor(Math.log10(least));
  return [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= least) ?? power * 10;
}

function drawAxis(context: CanvasRenderingContext2D, span: Span, width: number): void {
  const size = tickSize(span, width);
  const scale = width / (span.to - span.from);
  context.fillStyle = color("faint");
  context.font = "11px system-ui, sans-serif";
  context.textAlign = "center";
  for (let tick = Math.ceil(span.from / size) * size; tick <= span.to; tick += size) {
    const x = NAMES + (tick - span.from) * scale;
    context.fillRect(x, 0, 1, 4);
    if (x > NAMES + 20 && x < NAMES + width - 20) context.fillText(momentText(Math.max(0, tick), size), x, AXIS - 5);
  }
}

function drawRows(context: CanvasRenderingContext2D, { rows, span, chosen }: Properties, width: number): void {
  const size = rowHeight(rows.length);
  const gap = size > 5 ? 2 : 0;
  const scale = width / (span.to - span.from);
  const colors = Object.fromEntries(PHASES.map((phase) => [phase, color(`phase-${phase}`)]));
  const [ink, strong, error, waiting] = [color("faint"), color("ink"), color("error"), color("phase-collective")];
  const every = Math.max(1, Math.ceil(14 / size));
  context.textAlign = "right";
  context.font = "11px system-ui, sans-serif";
  rows.forEach((row, i) => {
    const y = TOP + i * size;
    eachPhase(row.steps, span, (phase, from, to) => {
      const left = Math.max(0, (from - span.from) * scale);
      const right = Math.min(width, (to - span.from) * scale);
      context.fillStyle = colors[phase] ?? ink;
      context.fillRect(NAMES + left, y + gap / 2, Math.max(0.4, right - left), size - gap);
    });
    if (row.waits) {
      context.fillStyle = waiting;
      eachWait(row.waits, span, (from, to) => {
        const left = Math.max(0, (from - span.from) * scale);
        const right = Math.min(width, (to - span.from) * scale);
        context.fillRect(NAMES + left, y + size * 0.55, Math.max(1, right - left), Math.max(1, size * 0.45 - gap / 2));
      });
    }
    if (row.failed !== null && row.failed >= span.from && row.failed <= span.to) {
      context.fillStyle = error;
      context.fillRect(NAMES + (row.failed - span.from) * scale - 1, y, 3, size);
    }
    context.fillStyle = row.index === chosen ? strong : ink;
    if (i % every === 0 || row.index === chosen) context.fillText(row.shortName, NAMES - 6, y + size / 2 + 4, NAMES - 8);
  });
}

// A cleared canvas of that many CSS pixels.
function contextOf(canvas: HTMLCanvasElement, width: number, height: number): CanvasRenderingContext2D | null {
  const ratio = window.devicePixelRatio || 1;
  canvas.width = width * ratio;
  canvas.height = height * ratio;
  canvas.style.height = `${height}px`;
  const context = canvas.getContext("2d");
  context?.scale(ratio, ratio);
  return context;
}

// Many rows scroll; the axis beneath them stays in sight. A scroll bar beside the rows is not beside the axis.
function draw(canvas: HTMLCanvasElement, axis: HTMLCanvasElement, properties: Properties): void {
  const width = canvas.clientWidth;
  const rows = contextOf(canvas, width, rowHeight(properties.rows.length) * properties.rows.length + TOP);
  axis.style.width = `${width}px`;
  const times = contextOf(axis, width, AXIS);
  if (!rows || !times) return;
  drawRows(rows, properties, width - NAMES);
  drawAxis(times, properties.span, width - NAMES);
}

function keyed(key: string, span: Span, whole: Span): Span | null {
  const middle = (span.from + span.to) / 2;
  if (key === "+" || key === "=") return zoomed(span, whole, 0.5, middle);
  if (key === "-") return zoomed(span, whole, 2, middle);
  if (key === "0") return whole;
  if (key === "ArrowLeft") return moved(span, whole, -0.25);
  if (key === "ArrowRight") return moved(span, whole, 0.25);
  return null;
}

// Of the pointer over the rows, in pixels from their left.
interface Drag {
  from: number;
  to: number;
}

function within(x: number, width: number): number {
  return Math.min(Math.max(x, NAMES), NAMES + width);
}

function Marked({ drag, width }: { drag: Drag; width: number }) {
  const [left, right] = [within(Math.min(drag.from, drag.to), width), within(Math.max(drag.from, drag.to), width)];
  return <div class="marked" style={{ left: `${left}px`, width: `${right - left}px` }} />;
}

function useDrawn(canvas: RefObject<HTMLCanvasElement | null>, axis: RefObject<HTMLCanvasElement | null>, properties: Properties): void {
  useEffect(() => {
    const [element, beneath] = [canvas.current, axis.current];
    if (!element || !beneath) return;
    const redraw = () => draw(element, beneath, properties);
    redraw();
    const resized = new ResizeObserver(redraw);
    resized.observe(element);
    window.addEventListener("devsan-theme", redraw);
    return () => {
      resized.disconnect();
      window.removeEventListener("devsan-theme", redraw);
    };
  }, [properties.rows, properties.span, properties.chosen]);
}

export function RankChart(properties: Properties) {
  const { rows, whole, span, choose, onZoom } = properties;
  const canvas = useRef<HTMLCanvasElement>(null);
  const axis = useRef<HTMLCanvasElement>(null);
  const [drag, setDrag] = useState<Drag | null>(null);
  useDrawn(canvas, axis, properties);
  const width = () => (canvas.current?.clientWidth ?? NAMES + 1) - NAMES;
  const timeAt = (x: number) => span.from + ((within(x, width()) - NAMES) / width()) * (span.to - span.from);
  const up = (event: PointerEvent) => {
    if (drag === null) return;
    setDrag(null);
    if (Math.abs(event.offsetX - drag.from) > 4) {
      const dragged = spanBetween(timeAt(drag.from), timeAt(event.offsetX));
      if (dragged) onZoom(dragged);
    } else {
      const row = rows[Math.floor((event.offsetY - TOP) / rowHeight(rows.length))];
      if (row) choose(row.index);
    }
  };
  return (
    <div
      class="ranks" tabIndex={0} role="application" aria-label="Steps of each rank over time. Plus and minus zoom, arrows move, 0 shows all."
      onKeyDown={(event) => {
        const next = keyed(event.key, span, whole);
        if (next === null) return;
        event.preventDefault();
        event.stopPropagation();
        onZoom(next);
      }}
    >
      <div class="rows">
        <div class="drawn">
          <canvas
            ref={canvas} role="img" aria-label={`Phases of the steps of ${rows.length} processes; the table below has them in numbers`}
            onPointerDown={(event) => {
              if (event.button !== 0) return;
              event.currentTarget.setPointerCapture(event.pointerId); // it may be released outside
              setDrag({ from: event.offsetX, to: event.offsetX });
            }}
            onPointerMove={(event) => drag !== null && setDrag({ ...drag, to: event.offsetX })}
            onPointerUp={up}
            onPointerCancel={() => setDrag(null)}
            onDblClick={() => onZoom(whole)}
          />
          {drag && <Marked drag={drag} width={width()} />}
        </div>
      </div>
      <canvas ref={axis} class="axis" aria-hidden="true" />
    </div>
  );
}
