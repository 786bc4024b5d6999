// The overview of the whole recording, and the ruler below it.

import { duration } from "../format.js";
import type { Data } from "./data.js";
import type { Palette } from "./palette.js";
import { fill, lane as drawLane, type Raster } from "./raster.js";
import { columns, statesOf } from "./sums.js";
import type { Tick } from "./ticks.js";
import type { View } from "./view.js";

/** A canvas of so many pixels of the style, drawn as finely as the screen is. */
export function sized(canvas: HTMLCanvasElement, width: number, height: number, ratio: number): CanvasRenderingContext2D | null {
  const [w, h] = [Math.max(1, Math.round(width * ratio)), Math.max(1, Math.round(height * ratio))];
  if (canvas.width !== w) canvas.width = w;
  if (canvas.height !== h) canvas.height = h;
  return canvas.getContext("2d");
}

/** The overview. What the lanes add up to is drawn once for each width and each palette. */
export class Overview {
  private kept: { image: ImageData; palette: Palette } | undefined;

  constructor(private readonly data: Data) {}

  /** The lanes that are summed: vCPUs, or the first group that there is. */
  private lanes(): Data["lanes"] {
    const vcpus = this.data.lanes.filter((lane) => lane.group === "vcpus");
    const first = this.data.lanes[0]?.group;
    return vcpus.length > 0 ? vcpus : this.data.lanes.filter((lane) => lane.group === first);
  }

  draw(canvas: HTMLCanvasElement, view: View, palette: Palette, width: number, height: number, ratio: number): void {
    const context = sized(canvas, width, height, ratio);
    if (!context) return;
    const [w, h] = [canvas.width, canvas.height];
    if (!this.kept || this.kept.palette !== palette || this.kept.image.width !== w || this.kept.image.height !== h) {
      const image = context.createImageData(w, h);
      const raster: Raster = { pixels: new Uint32Array(image.data.buffer), width: w, height: h };
      fill(raster, 0, h, palette.laneBackground);
      const lanes = this.lanes();
      const states = statesOf(lanes.map((lane) => lane.cells));
      const parts = new Float64Array((w + 1) * states.count);
      for (const { cells } of lanes) columns(parts, cells, states, 0, this.data.length, w);
      for (let at = 0; at < parts.length; at++) parts[at] = (parts[at] as number) / lanes.length;
      drawLane(raster, parts, states, 0, h, palette);
      this.kept = { image, palette };
    }
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.putImageData(this.kept.image, 0, 0);
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    const x = (time: number): number => (time / this.data.length) * width;
    context.fillStyle = palette.mark;
    for (const marks of this.data.marks) {
      if (marks.id !== "findings") continue;
      for (let i = 0; i < marks.count; i++) {
        const at = x(marks.begin[i] as number);
        context.beginPath();
        context.moveTo(at - 4, 0);
        context.lineTo(at + 4, 0);
        context.lineTo(at, 9);
        context.fill();
      }
    }
    const [x0, x1] = [x(view.from), Math.max(x(view.to), x(view.from) + 2)];
    context.fillStyle = palette.background;
    context.globalAlpha = 0.6;
    context.fillRect(0, 0, x0, height);
    context.fillRect(x1, 0, width - x1, height);
    context.globalAlpha = 1;
    context.strokeStyle = palette.text;
    context.lineWidth = 2;
    context.strokeRect(x0 + 1, 1, Math.max(1, x1 - x0 - 2), height - 2);
  }
}

/** Another canvas of the page that shows all of a recording; it is drawn while it is in sight. */
export class Elsewhere {
  private readonly strip: Overview;
  private isSeen = false;

  constructor(
    data: Data,
    private readonly canvas: HTMLCanvasElement,
    redraw: () => void,
  ) {
    this.strip = new Overview(data);
    new IntersectionObserver(([entry]) => {
      this.isSeen = entry?.isIntersecting ?? false;
      if (this.isSeen) redraw();
    }).observe(canvas);
  }

  draw(view: View, palette: Palette, ratio: number): void {
    const { canvas } = this;
    if (this.isSeen && canvas.clientWidth > 0) this.strip.draw(canvas, view, palette, canvas.clientWidth, canvas.clientHeight, ratio);
  }
}

/** Draws the ruler. */
export function ruler(
  canvas: HTMLCanvasElement,
  data: Data,
  view: View,
  ticks: readonly Tick[],
  selection: readonly [number, number] | undefined,
  palette: Palette,
  width: number,
  height: number,
  ratio: number,
): void {
  const context = sized(canvas, width, height, ratio);
  if (!context) return;
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  context.font = "11px system-ui, sans-serif";
  context.textBaseline = "middle";
  // Where single events were kept.
  context.fillStyle = palette.path;
  for (const window of data.windows) {
    const [x0, x1] = [view.x(window.begin, width), view.x(window.end, width)];
    if (x1 < 0 || x0 > width) continue;
    context.fillRect(x0, height - 3, Math.max(2, x1 - x0), 3);
  }
  context.fillStyle = palette.text;
  for (const tick of ticks) {
    const x = Math.round(view.x(tick.time, width));
    context.fillRect(x, height - 7, 1, 7);
    const half = context.measureText(tick.label).width / 2;
    if (x - half >= 0 && x + half <= width) {
      context.textAlign = "center";
      context.fillText(tick.label, x, height / 2 - 3);
    }
  }
  if (!selection) return;
  const [x0, x1] = [view.x(selection[0], width), view.x(selection[1], width)];
  context.fillStyle = palette.select;
  context.globalAlpha = 0.25;
  context.fillRect(x0, 0, x1 - x0, height);
  context.globalAlpha = 1;
  const text = duration(selection[1] - selection[0], data.nanoseconds);
  const half = context.measureText(text).width / 2 + 4;
  const middle = Math.min(Math.max((x0 + x1) / 2, half), width - half);
  context.fillRect(middle - half, 1, 2 * half, height - 8);
  context.fillStyle = palette.background;
  context.textAlign = "center";
  context.fillText(text, middle, height / 2 - 3);
}
