// Draws rows: lanes as pixels first, then what lies on them.

import type { Data, Lane, Marks } from "./data.js";
import { type Arrow, draw as drawArrows } from "./focus.js";
import { draw as drawHops, type Hop } from "./stages.js";
import type { Palette } from "./palette.js";
import { Letters } from "./labels.js";
import { box, fill, hatch, lane as drawLane, type Raster, tiled } from "./raster.js";
import type { Row } from "./rows.js";
import { draw as drawPoints, isScatter } from "./scatter.js";
import { columns, firstAbove, type States, statesOf } from "./sums.js";
import { name } from "./tell.js";
import type { Tick } from "./ticks.js";
import type { View } from "./view.js";

/** A place that is marked: by the keyboard's cursor or by a click. */
export interface Cursor {
  row: number;
  time: number;
}

/** What there is to draw, beside the data. */
export interface Scene {
  view: View;
  rows: readonly Row[];
  palette: Palette;
  /** Of the drawing area, in pixels of the style. */
  width: number;
  height: number;
  scroll: number;
  ratio: number;
  ticks: readonly Tick[];
  marked: ReadonlySet<number>;
  selection: readonly [number, number] | undefined;
  cursor: Cursor | undefined;
  chosen: { line: number; index: number } | undefined;
  arrows: readonly Arrow[];
  /** The way of the instance that is chosen. */
  hops: readonly Hop[];
  /** The stretch of a CPU that somebody waited for. */
  waited: { row: Row; from: number; to: number } | undefined;
}

/** Width from which a cell has a border, and from which there is room for a letter. */
const BORDER = 4;
const LETTER = 14;
/** Labels that are drawn at most: where more have room, only those of wider cells are. */
const MOST_LABELS = 3000;
/** Events that are drawn one by one at most; more are summed to a band. */
const MOST_EVENTS = 20_000;

const FONT = "11px system-ui, sans-serif";

/** The colours of a lane. */
function paletteOf(lane: Lane | undefined, palette: Palette): Palette {
  return lane?.group === "threads" && lane.vm !== "" ? { ...palette, looks: palette.ofVm } : palette;
}

/** A label of a cell, in pixels of the style. */
interface Label {
  text: string;
  ink: string;
  x: number;
  y: number;
}

/** What rows are drawn from, kept from frame to frame so that nothing is made anew. */
export class Painter {
  private image: ImageData | undefined;
  private parts = new Float64Array(0);
  private letters: Letters | undefined;
  private readonly states = new Map<string, States>();

  constructor(private readonly data: Data) {
    for (const group of new Set(data.lanes.map((lane) => lane.group))) {
      const lanes = data.lanes.filter((lane) => lane.group === group);
      this.states.set(group, statesOf(lanes.map((lane) => lane.cells)));
    }
  }

  /** Draws all rows that show. */
  draw(context: CanvasRenderingContext2D, scene: Scene): void {
    const { palette, ratio, scroll } = scene;
    const width = Math.max(1, Math.round(scene.width * ratio));
    const height = Math.max(1, Math.round(scene.height * ratio));
    if (this.image?.width !== width || this.image.height !== height) this.image = context.createImageData(width, height);
    const raster: Raster = { pixels: new Uint32Array(this.image.data.buffer), width, height };
    raster.pixels.fill(palette.backgroundPixel);
    const showing = scene.rows.filter((row) => row.top + row.height > scroll && row.top < scroll + scene.height);
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.font = FONT;
    this.letters ??= new Letters(context);
    const labels = this.lanes(raster, scene, showing);
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.putImageData(this.image, 0, 0);
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.textBaseline = "middle";
    this.grid(context, scene);
    for (const { text, ink, x, y } of labels) {
      context.fillStyle = ink;
      context.fillText(text, x, y);
    }
    for (const row of showing) {
      const marks = row.type === "marks" ? this.data.marks[row.index] : undefined;
      if (marks) this.marks(context, scene, row, marks);
    }
    this.events(context, scene, showing);
    this.over(context, scene, showing);
  }

  /** Draws lanes as pixels, and returns the labels of their cells. */
  private lanes(raster: Raster, scene: Scene, showing: readonly Row[]): Label[] {
    const wide: { row: Row; lane: Lane; found: number[] }[] = [];
    let count = 0;
    const open = new Set(scene.rows.filter((row) => row.type === "lane").map((row) => row.fold));
    for (const row of showing) {
      if (row.type === "left") {
        const [top, bottom] = this.band(row, scene);
        tiled(raster, 0, raster.width, top, bottom, scene.palette.left.tile, scene.palette.size);
      }
      // An open group's row is its heading alone; a folded one's shows what its lanes add up to.
      if (row.lanes.length === 0 || (row.type === "group" && open.has(row.fold))) continue;
      const found = this.lane(raster, row, scene);
      const lane = row.type === "lane" ? this.data.lanes[row.index] : undefined;
      if (lane) wide.push({ row, lane, found });
      count += found.length;
    }
    const least = count > MOST_LABELS ? 48 : LETTER;
    return wide.flatMap(({ row, lane, found }) => this.cells(raster, scene, row, lane, found, least));
  }

  /** Where a row's lane is, in pixels of the screen. */
  private band(row: Row, { ratio, scroll }: Scene): [number, number] {
    return [Math.round((row.top - scroll + 2) * ratio), Math.round((row.top - scroll + row.height - 2) * ratio)];
  }

  private lane(raster: Raster, row: Row, scene: Scene): number[] {
    const { ratio, view } = scene;
    const isSum = row.type === "group";
    const first = this.data.lanes[row.lanes[0] ?? -1];
    const palette = paletteOf(first, scene.palette);
    const [top, bottom] = this.band(row, scene);
    fill(raster, top, bottom, palette.laneBackground);
    const states = this.states.get(first?.group ?? "") ?? { first: 0, count: this.data.kinds.length };
    const size = (raster.width + 1) * states.count;
    if (this.parts.length < size) this.parts = new Float64Array(size);
    const parts = this.parts;
    parts.fill(0, 0, size);
    const found: number[] = [];
    for (const index of row.lanes) {
      const lane = this.data.lanes[index];
      const least = isSum ? Infinity : BORDER * ratio;
      if (lane) columns(parts, lane.cells, states, view.from, view.to, raster.width, least, found);
    }
    if (isSum) for (let at = 0; at < size; at++) parts[at] = (parts[at] as number) / row.lanes.length;
    drawLane(raster, parts, states, top, bottom, palette);
    return found;
  }

  private grid(context: CanvasRenderingContext2D, { ticks, view, width, height, palette }: Scene): void {
    context.globalAlpha = 0.35;
    context.fillStyle = palette.line;
    for (const tick of ticks) context.fillRect(Math.round(view.x(tick.time, width)), 0, 1, height);
    context.globalAlpha = 1;
  }

  /** Borders of cells that have room for them, and labels of those that are `least` wide. */
  private cells(raster: Raster, scene: Scene, row: Row, lane: Lane, found: readonly number[], least: number): Label[] {
    const { view, ratio } = scene;
    const palette = paletteOf(lane, scene.palette);
    const { cells } = lane;
    const [top, bottom] = this.band(row, scene);
    const labels: Label[] = [];
    const label = (text: string, ink: string, ground: number, x: number): void => {
      const width = this.letters?.width(text) ?? 0;
      // On patterns, letters need a quiet ground.
      const inset = Math.round(2 * ratio);
      box(raster, Math.round((x - 2) * ratio), Math.round((x + width + 2) * ratio), top + inset, bottom - inset, ground);
      labels.push({ text, ink, x, y: row.top - scene.scroll + row.height / 2 + 0.5 });
    };
    for (const i of found) {
      const x0 = Math.max(-1, view.x(cells.begin[i] as number, scene.width));
      const x1 = Math.min(scene.width + 1, view.x(cells.end[i] as number, scene.width));
      const state = cells.kind[i] as number;
      const room = x1 - Math.max(0, x0) - 7;
      if (state < 0) {
        this.sum(raster, scene, x0, x1, [top, bottom], view.x(cells.begin[i] as number, scene.width));
        const text = `Σ ${cells.c[i]}`;
        if (room > 24 && room >= least && (this.letters?.width(text) ?? Infinity) + 6 < room) label(text, palette.text, palette.backgroundPixel, Math.max(0, x0) + 7);
        continue;
      }
      const look = palette.looks[state];
      if (!look) continue;
      const edge = Math.round(x0 * ratio);
      box(raster, edge, edge + Math.max(1, Math.round(ratio)), top, bottom, palette.backgroundPixel);
      if (x1 - x0 < least) continue;
      const what = name(this.data, cells.a[i] as number);
      const long = what ? `${look.letter} ${what}` : (this.data.kinds[state]?.label ?? "");
      const text = room < 24 ? look.letter : this.letters?.fit(long, room) || look.letter;
      label(text, look.ink, look.pixel, Math.max(0, x0) + 4);
    }
    return labels;
  }

  /** A sum that was not kept finer: hatched, since where in it its states are is not known, and with a border. */
  private sum(raster: Raster, scene: Scene, x0: number, x1: number, [top, bottom]: [number, number], origin: number): void {
    if (x1 - x0 < 6) return;
    const { palette, ratio } = scene;
    const [left, right] = [Math.round(x0 * ratio), Math.round(x1 * ratio)];
    const line = Math.max(1, Math.round(ratio));
    hatch(raster, left, right, top, bottom, Math.round(origin * ratio), Math.round(9 * ratio), palette.backgroundPixel);
    box(raster, left, right, top, top + line, palette.softPixel);
    box(raster, left, right, bottom - line, bottom, palette.softPixel);
    box(raster, left, left + line, top, bottom, palette.softPixel);
    box(raster, right - line, right, top, bottom, palette.softPixel);
  }

  private colourOf(palette: Palette, id: string): string {
    return id === "findings" ? palette.mark : id === "lost" ? palette.lost : palette.path;
  }

  private marks(context: CanvasRenderingContext2D, scene: Scene, row: Row, marks: Marks): void {
    const { view, width, palette, scroll } = scene;
    if (isScatter(marks)) {
      const chosen = scene.chosen?.line === row.index ? scene.chosen.index : -1;
      drawPoints(context, marks, { top: row.top - scroll, high: row.height }, view, width, palette, chosen);
      return;
    }
    const top = row.top - scroll + 2;
    const high = row.height - 4;
    context.fillStyle = this.colourOf(palette, marks.id);
    let before = -10;
    for (let i = 0; i < marks.count; i++) {
      const begin = marks.begin[i] as number;
      if (begin > view.to) break;
      const end = begin + (marks.length[i] as number);
      if (end < view.from) continue;
      const x0 = Math.max(-2, view.x(begin, width));
      const x1 = Math.min(width + 2, view.x(end, width));
      if (x1 - x0 > 2) {
        context.globalAlpha = 0.45;
        context.fillRect(x0, top + high / 3, x1 - x0, high / 3);
        context.globalAlpha = 1;
      }
      const isChosen = scene.chosen?.line === row.index && scene.chosen.index === i;
      if (isChosen || x0 - before >= 5) this.marker(context, x0, top, high, marks.id, isChosen);
      else context.fillRect(x0, top, 1, high);
      if (isChosen || x0 - before >= 5) before = x0;
    }
  }

  /** A marker, in a shape of its own for findings, losses and paths. */
  private marker(context: CanvasRenderingContext2D, x: number, top: number, high: number, id: string, isChosen: boolean): void {
    const size = isChosen ? 7 : 4.5;
    const y = top + high / 2;
    context.beginPath();
    if (id === "findings") {
      context.moveTo(x - size, top);
      context.lineTo(x + size, top);
      context.lineTo(x, top + high);
    } else if (id === "lost") {
      context.rect(x - size / 2, top, size, high);
    } else {
      context.moveTo(x, y - size);
      context.lineTo(x + size, y);
      context.lineTo(x, y + size);
      context.lineTo(x - size, y);
    }
    context.closePath();
    context.fill();
  }

  /** Single events: ticks at the foot of their lanes. */
  private events(context: CanvasRenderingContext2D, scene: Scene, showing: readonly Row[]): void {
    const { view, width, palette, scroll } = scene;
    const byLane = new Map<number, Row>();
    for (const row of showing) {
      if (row.type === "lane") byLane.set(row.index, row);
      if (row.type === "events") byLane.set(-1, row);
    }
    context.fillStyle = palette.text;
    const drawn = new Map<Row, number>();
    for (const window of this.data.windows) {
      if (window.end < view.from || window.begin > view.to) continue;
      const first = firstAbove(window.time, view.from - 1);
      const last = firstAbove(window.time, view.to);
      if (last - first > MOST_EVENTS || (last - first) / width > 8) continue;
      // Where they are so close that they run into each other, they are paler than what stands above them.
      const pixels = view.x(Math.min(window.end, view.to), width) - view.x(Math.max(window.begin, view.from), width);
      context.globalAlpha = (last - first) / Math.max(1, pixels) > 0.5 ? 0.4 : 1;
      for (let i = first; i < last; i++) {
        const row = byLane.get(window.lane[i] as number);
        if (!row) continue;
        const x = view.x(window.time[i] as number, width);
        if (drawn.get(row) === Math.round(x)) continue;
        drawn.set(row, Math.round(x));
        const foot = row.top - scroll + row.height;
        if (row.type === "events") context.fillRect(x - 0.5, foot - row.height + 3, 1, row.height - 6);
        else context.fillRect(x - 0.75, foot - 6, 1.5, 6);
      }
    }
    context.globalAlpha = 1;
  }

  /** What lies over all lanes: lanes that a link names, the selected range, the cursor. */
  private over(context: CanvasRenderingContext2D, scene: Scene, showing: readonly Row[]): void {
    const { view, width, height, palette, scroll, selection, cursor } = scene;
    context.strokeStyle = palette.select;
    context.lineWidth = 2;
    for (const row of showing) {
      if (row.type === "lane" && scene.marked.has(row.index)) context.strokeRect(1, row.top - scroll + 0.5, width - 2, row.height - 1);
    }
    if (selection) {
      const [x0, x1] = [view.x(selection[0], width), view.x(selection[1], width)];
      context.fillStyle = palette.select;
      context.globalAlpha = 0.14;
      context.fillRect(x0, 0, x1 - x0, height);
      context.globalAlpha = 1;
      context.fillRect(Math.round(x0), 0, 1, height);
      context.fillRect(Math.round(x1), 0, 1, height);
    }
    if (scene.waited) {
      const { row, from, to } = scene.waited;
      const [x0, x1] = [view.x(from, width), view.x(to, width)];
      context.strokeStyle = palette.text;
      context.strokeRect(x0, row.top - scroll + 0.5, Math.max(2, x1 - x0), row.height - 1);
    }
    drawArrows(context, scene.arrows, scroll, palette);
    drawHops(context, scene.hops, scroll, palette);
    if (!cursor) return;
    context.lineWidth = 2;
    const x = view.x(cursor.time, width);
    context.fillStyle = palette.text;
    context.globalAlpha = 0.6;
    context.fillRect(Math.round(x), 0, 1, height);
    context.globalAlpha = 1;
    const row = scene.rows[cursor.row];
    // A mark that is chosen stands out itself.
    if (!row || (row.type === "marks" && scene.chosen?.line === row.index)) return;
    const y = row.top - scroll + row.height / 2;
    context.strokeStyle = palette.text;
    context.beginPath();
    context.arc(x, y, 4.5, 0, 2 * Math.PI);
    context.fillStyle = palette.background;
    context.fill();
    context.stroke();
  }
}
