import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { bytesText, momentText } from "../model/format";
import { curveName, type Curve } from "../model/memory";
import { spanBetween, type Span } from "../model/timeline";
import { color } from "./colors";
import { LEFT } from "./layout";

const HEIGHT = 150;

interface Properties {
  curve: Curve;
  whole: Span;
  span: Span;
  onZoom: (span: Span) => void;
}

// Bytes are told in powers of two.
const BYTES = Array.from({ length: 50 }, (_, power) => 2 ** power);

function axis(size: number, values: (numbers: number[], step: number) => string[]): uPlot.Axis {
  return {
    size,
    stroke: color("faint"),
    grid: { stroke: color("line"), width: 1 },
    ticks: { stroke: color("line"), width: 1 },
    font: "11px system-ui, sans-serif",
    values: (_plot, numbers, _index, _room, step) => values(numbers, step),
  };
}

// A plot lives on while the span changes: `now` tells it as it is.
function options(curve: Curve, width: number, now: () => Properties): uPlot.Options {
  const held = curve.device === null ? "pinned" : "taken from the device";
  const { span } = now();
  return {
    width,
    height: HEIGHT,
    padding: [10, 0, 0, 0],
    cursor: {
      sync: { key: "memory" },
      drag: { x: true, y: false, setScale: false },
      bind: {
        dblclick: () => () => {
          now().onZoom(now().whole);
          return null;
        },
      },
    },
    legend: { show: true, live: true },
    scales: { x: { time: false, min: span.from, max: span.to, auto: false }, y: { range: (_plot, _low, high) => [0, high > 0 ? high * 1.1 : 1] } },
    axes: [
      axis(26, (numbers, step) => numbers.map((number) => momentText(number, step))),
      { ...axis(LEFT, (numbers) => numbers.map(bytesText)), incrs: BYTES },
    ],
    series: [
      { label: "time", value: (_plot, value: number | null) => (value === null ? "–" : momentText(value, (now().span.to - now().span.from) / 1000)) },
      {
        label: curve.device === null ? "process's own" : "in tensors", stroke: color("chart-used"), fill: color("chart-fill"), width: 2, points: { size: 4 },
        value: (_plot, value: number | null) => (value === null ? "–" : bytesText(value)),
      },
      {
        label: held, stroke: color("chart-held"), dash: [5, 4], width: 1.5, points: { show: false },
        value: (_plot, value: number | null) => (value === null ? "–" : bytesText(value)),
      },
    ],
    hooks: {
      setSelect: [
        (plot) => {
          if (plot.select.width < 4) return;
          const chosen = spanBetween(plot.posToVal(plot.select.left, "x"), plot.posToVal(plot.select.left + plot.select.width, "x"));
          if (chosen) now().onZoom(chosen);
          plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
        },
      ],
    },
  };
}

export function MemoryChart(properties: Properties) {
  const { curve, span } = properties;
  const latest = useRef(properties);
  latest.current = properties;
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  useEffect(() => {
    const element = box.current;
    if (!element) return;
    const draw = () => {
      plot.current?.destroy();
      const data: uPlot.AlignedData = [curve.time.map((time) => time / 1000), curve.used, curve.held];
      plot.current = new uPlot(options(curve, element.clientWidth, () => latest.current), data, element);
    };
    draw();
    const resized = new ResizeObserver(() => plot.current?.setSize({ width: element.clientWidth, height: HEIGHT }));
    resized.observe(element);
    window.addEventListener("devsan-theme", draw);
    return () => {
      resized.disconnect();
      window.removeEventListener("devsan-theme", draw);
      plot.current?.destroy();
    };
  }, [curve]);
  useEffect(() => plot.current?.setScale("x", { min: span.from, max: span.to }), [span]);
  const label = `Memory of ${curveName(curve)} over time: at most ${bytesText(curve.peak.used)}, at step ${curve.peak.step}`;
  return (
    <figure class="chart">
      <figcaption><span class="chart-name">{curveName(curve)}</span> <span class="faint">peak {bytesText(curve.peak.used)} at step {curve.peak.step}</span></figcaption>
      <div ref={box} role="img" aria-label={label} />
    </figure>
  );
}
