// Distributions as plots: the quantile across, the value upwards, by uPlot.

import uPlot from "uplot";
import { all, make } from "./dom.js";
import { human, short } from "./format.js";

/** What a figure holds. */
interface Written {
  /** Of which path it is. */
  title?: string;
  x_label?: string;
  y_label?: string;
  series: { label: string; x: number[]; y: (number | null)[] }[];
}

const HEIGHT = 260;
/** Lines in turn, so that they can be distinguished without colour. */
const DASHES: readonly number[][] = [[], [7, 4], [2, 3], [10, 3, 2, 3], [14, 4], [4, 2, 2, 2, 2, 2]];

/** Series of points of their own, with one list of all their places: uPlot wants the latter. */
export function align(series: Written["series"]): (number | null)[][] {
  const places = [...new Set(series.flatMap((one) => one.x))].sort((a, b) => a - b);
  const lists = series.map((one) => {
    const at = new Map(one.x.map((x, index) => [x, one.y[index] ?? null]));
    // A place that only another series has: nothing, over which the line goes on.
    return places.map((x) => at.get(x) ?? null);
  });
  return [places, ...lists];
}

/** A value with its unit. */
function formatter(unit: string | null): { axis: (value: number) => string; exact: (value: number) => string } {
  if (unit === "ns") return { axis: short, exact: human };
  const plain = (value: number): string => String(Number(value.toPrecision(4)));
  return { axis: plain, exact: plain };
}

/** The value of each series where the pointer is: the last point at or before it. */
function valueAt(list: readonly (number | null)[], index: number): number | null {
  for (let at = index; at >= 0; at--) if (list[at] != null) return list[at] as number;
  return null;
}

function draw(host: HTMLElement, unit: string | null, written: Written): uPlot {
  const style = getComputedStyle(host);
  const named = (name: string): string => style.getPropertyValue(name).trim();
  const colours = [1, 2, 3, 4, 5, 6].map((at) => named(`--series-${at}`));
  const { axis, exact } = formatter(unit);
  const lists = align(written.series);
  const axes = { stroke: named("--soft"), grid: { stroke: named("--line"), width: 1 }, ticks: { stroke: named("--line"), width: 1 }, font: "11px system-ui, sans-serif", labelFont: "11px system-ui, sans-serif" };
  const options: uPlot.Options = {
    ...(written.title ? { title: written.title } : {}),
    width: Math.max(200, host.clientWidth),
    height: HEIGHT,
    // Without animation, and without what would move the page when the wheel turns.
    cursor: { drag: { x: false, y: false }, y: false },
    scales: { x: { time: false }, y: { distr: 3, log: 10 } },
    axes: [
      { ...axes, label: written.x_label ?? "", size: 34, labelSize: 22, values: (_, splits) => splits.map((x) => `${Number((x * 100).toPrecision(6))} %`) },
      { ...axes, label: written.y_label ?? "", size: 60, labelSize: 22, values: (_, splits) => splits.map((y) => (y == null ? "" : axis(y))) },
    ],
    series: [
      { label: written.x_label ?? "x", value: (_, x) => (x == null ? "" : `${Number((x * 100).toPrecision(6))} %`) },
      ...written.series.map(
        (one, at): uPlot.Series => ({
          label: one.label,
          stroke: colours[at % colours.length] ?? "#888",
          width: 2,
          dash: DASHES[at % DASHES.length] ?? [],
          spanGaps: true,
          points: { show: false },
          value: (_, __, ___, index) => {
            const value = index == null ? null : valueAt(lists[at + 1] ?? [], index);
            return value == null ? "" : exact(value);
          },
        }),
      ),
    ],
  };
  return new uPlot(options, lists as uPlot.AlignedData, host);
}

/** uPlot has a logarithmic scale of what is above nothing. */
function isDrawable(written: Written): boolean {
  return Array.isArray(written.series) && written.series.some((one) => one.x.length > 1 && one.y.some((y) => y != null && y > 0));
}

/** Draws every plot of the page. */
export function start(): void {
  for (const figure of all("figure.plot")) {
    const data = figure.querySelector('script[type="application/json"]');
    if (!data) continue;
    let written: Written;
    try {
      written = JSON.parse(data.textContent ?? "") as Written;
    } catch {
      continue;
    }
    if (!isDrawable(written)) continue;
    for (const one of written.series) one.y = one.y.map((y) => (y != null && y > 0 ? y : null));
    const label = `Plot: ${(figure.querySelector("figcaption")?.textContent ?? "").trim()}. The table beside it has the same numbers.`;
    const host = make("div", { class: "plot-area", role: "img", "aria-label": label });
    data.after(host);
    const unit = figure.getAttribute("data-unit");
    // Nothing is drawn while it is folded away.
    let plot: uPlot | undefined;
    const again = (): void => {
      plot?.destroy();
      plot = draw(host, unit, written);
    };
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => plot && again());
    window.addEventListener("beforeprint", () => {
      document.documentElement.classList.add("printing");
      again();
    });
    window.addEventListener("afterprint", () => {
      document.documentElement.classList.remove("printing");
      again();
    });
    new ResizeObserver(() => {
      if (host.clientWidth <= 0) return;
      if (!plot) again();
      else if (Math.abs(host.clientWidth - plot.width) > 1) plot.setSize({ width: host.clientWidth, height: HEIGHT });
    }).observe(figure);
  }
}
