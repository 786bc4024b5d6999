// Draws rows: lanes as pixels first, then what lies on them.

import type { Data, Lane, Marks } from "./data.js";
import type { Palette } from "./palette.js";
import { fill, lane as drawLane, type Raster } from "./raster.js";
import type { Row } from "./rows.js";
import { columns, firstAbove } from "./sums.js";
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
}

/** Width from which a cell has a border, and from which there is room for a letter. */
const BORDER = 4;
const LETTER = 14;
/** Events that are drawn one by one at most; more are summed to a band. */
const MOST_EVENTS = 20_000;

const FONT = "11px system-ui, sans-serif";

/** What a row is drawn from, kept from frame to frame so that nothing is made anew. */
export class Painter {
  private image: ImageData | undefined;
  private parts = new Float64Array(0);
  private readonly widths = new Map<string, number>();

  constructor(private readonly data: Data) {}

  /** Draws all rows that show. */
  draw(context: CanvasRenderingContext2D, scene: Scene): void {
    const { palette, ratio, scroll } = scene;
    const width = Math.max(1, Math.round(scene.width * ratio));
    const height = Math.max(1, Math.round(scene.height * ratio));
    if (this.image?.width !== width || this.image.height !== height) {
      this.image = context.createImageData(width, height);
      this.parts = new Float64Array((width + 1) * Math.max(1, this.data.kinds.length));
    }
    const raster: Raster = { pixels: new Uint32Array(this.image.data.buffer), width, height };
    raster.pixels.fill(palette.backgroundPixel);
    const showing = scene.rows.filter((row) => row.top + row.height > scroll && row.top < scroll + scene.height);
    const wide = new Map<Row, number[]>();
    for (const row of showing) this.lane(raster, row, scene, wide);
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.putImageData(this.image, 0, 0);
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.font = FONT;
    context.textBaseline = "middle";
    this.grid(context, scene);
    for (const row of showing) {
      const lane = row.type === "lane" ? this.data.lanes[row.index] : undefined;
      if (lane) this.cells(context, scene, row, lane, wide.get(row) ?? []);
      const marks = row.type === "marks" ? this.data.marks[row.index] : undefined;
      if (marks) this.marks(context, scene, row, marks);
    }
    this.events(context, scene, showing);
    this.over(context, scene, showing);
  }

  private lane(raster: Raster, row: Row, scene: Scene, wide: Map<Row, number[]>): void {
    const { ratio, scroll, palette, view } = scene;
    const isSum = row.type === "group";
    if (row.lanes.length === 0 || (isSum && scene.rows.some((one) => one.type === "lane" && one.group === row.group))) return;
    const top = Math.round((row.top - scroll + 2) * ratio);
    const bottom = Math.round((row.top - scroll + row.height - 2) * ratio);
    fill(raster, top, bottom, palette.laneBackground);
    const kinds = this.data.kinds.length;
    this.parts.fill(0);
    const found: number[] = [];
    for (const index of row.lanes) {
      const lane = this.data.lanes[index];
      const least = isSum ? Infinity : BORDER * ratio;
      if (lane) columns(this.parts, lane.cells, kinds, view.from, view.to, raster.width, least, found);
    }
    if (isSum) for (let at = 0; at < this.parts.length; at++) this.parts[at] = (this.parts[at] as number) / row.lanes.length;
    drawLane(raster, this.parts, kinds, top, bottom, palette);
    wide.set(row, found);
  }

  private grid(context: CanvasRenderingContext2D, { ticks, view, width, height, palette }: Scene): void {
    context.globalAlpha = 0.35;
    context.fillStyle = palette.line;
    for (const tick of ticks) context.fillRect(Math.round(view.x(tick.time, width)), 0, 1, height);
    context.globalAlpha = 1;
  }

  /** How wide a text is. */
  private measure(context: CanvasRenderingContext2D, text: string): number {
    let width = this.widths.get(text);
    if (width === undefined) {
      if (this.widths.size > 5000) this.widths.clear();
      width = context.measureText(text).width;
      this.widths.set(text, width);
    }
    return width;
  }

  /** Borders and labels of cells that have room for them. */
  private cells(context: CanvasRenderingContext2D, scene: Scene, row: Row, lane: Lane, found: readonly number[]): void {
    const { view, width, palette, scroll } = scene;
    const { cells } = lane;
    const top = row.top - scroll + 2;
    const high = row.height - 4;
    for (const i of found) {
      const x0 = Math.max(-1, view.x(cells.begin[i] as number, width));
      const x1 = Math.min(width + 1, view.x(cells.end[i] as number, width));
      const state = cells.kind[i] as number;
      if (state < 0) {
        this.sum(context, scene, x0, x1, top, high, cells.c[i] as number);
        continue;
      }
      const look = palette.looks[state];
      if (!look) continue;
      context.fillStyle = palette.background;
      context.fillRect(Math.round(x0), top, 1, high);
      const room = x1 - Math.max(0, x0) - 6;
      if (room < LETTER - 6) continue;
      const what = name(this.data, cells.a[i] as number);
      const long = what ? `${look.letter} ${what}` : (this.data.kinds[state]?.label ?? "");
      const text = this.fit(context, long, room) || look.letter;
      const textWidth = this.measure(context, text);
      const x = Math.max(0, x0) + 4;
      // On patterns, letters need a quiet ground.
      context.fillStyle = look.fill;
      context.fillRect(x - 1, top + 2, Math.min(textWidth, room) + 2, high - 4);
      context.fillStyle = look.ink;
      context.fillText(text, x, top + high / 2 + 0.5, room);
    }
  }

  /** A sum that was not kept finer: hatched, since where in it its states are is not known. */
  private sum(context: CanvasRenderingContext2D, scene: Scene, x0: number, x1: number, top: number, high: number, count: number): void {
    const { palette, width } = scene;
    const [left, right] = [Math.max(0, x0), Math.min(width, x1)];
    if (right - left < 6) return;
    context.save();
    context.beginPath();
    context.rect(left, top, right - left, high);
    context.clip();
    context.strokeStyle = palette.background;
    context.globalAlpha = 0.75;
    context.lineWidth = 1.5;
    context.beginPath();
    // Lines stay where they are in the recording when it is moved.
    for (let x = left - ((left - x0) % 9) - high; x < right; x += 9) {
      context.moveTo(x, top + high);
      context.lineTo(x + high, top);
    }
    context.stroke();
    context.globalAlpha = 1;
    context.strokeStyle = palette.soft;
    context.lineWidth = 1;
    context.strokeRect(Math.round(x0) + 0.5, top + 0.5, x1 - x0 - 1, high - 1);
    const text = `Σ ${count}`;
    const textWidth = this.measure(context, text);
    if (right - left > textWidth + 14) {
      context.fillStyle = palette.background;
      context.fillRect(left + 4, top + 2, textWidth + 6, high - 4);
      context.fillStyle = palette.text;
      context.fillText(text, left + 7, top + high / 2 + 0.5);
    }
    context.restore();
  }

  private fit(context: CanvasRenderingContext2D, text: string, room: number): string {
    if (room < 24) return "";
    if (this.measure(context, text) <= room) return text;
    // Letters of this font are at least three pixels wide, so much of a long name need not be measured.
    let low = 1;
    let high = Math.min(text.length, Math.ceil(room / 3));
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (context.measureText(`${text.slice(0, middle)}…`).width <= room) low = middle;
      else high = middle - 1;
    }
    return low > 2 ? `${text.slice(0, low)}…` : "";
  }

  private colourOf(palette: Palette, id: string): string {
    return id === "findings" ? palette.mark : id === "lost" ? palette.lost : palette.path;
  }

  private marks(context: CanvasRenderingContext2D, scene: Scene, row: Row, marks: Marks): void {
    const { view, width, palette, scroll } = scene;
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
    for (const window of this.data.windows) {
      if (window.end < view.from || window.begin > view.to) continue;
      const first = firstAbove(window.time, view.from - 1);
      const last = firstAbove(window.time, view.to);
      if (last - first > MOST_EVENTS || (last - first) / width > 8) continue;
      for (let i = first; i < last; i++) {
        const row = byLane.get(window.lane[i] as number);
        if (!row) continue;
        const x = view.x(window.time[i] as number, width);
        const foot = row.top - scroll + row.height;
        if (row.type === "events") context.fillRect(x - 0.5, foot - row.height + 3, 1, row.height - 6);
        else context.fillRect(x - 0.75, foot - 6, 1.5, 6);
      }
    }
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
    if (!cursor) return;
    const x = view.x(cursor.time, width);
    context.fillStyle = palette.text;
    context.globalAlpha = 0.6;
    context.fillRect(Math.round(x), 0, 1, height);
    context.globalAlpha = 1;
    const row = scene.rows[cursor.row];
    if (!row) return;
    const y = row.top - scroll + row.height / 2;
    context.strokeStyle = palette.text;
    context.beginPath();
    context.arc(x, y, 4.5, 0, 2 * Math.PI);
    context.fillStyle = palette.background;
    context.fill();
    context.stroke();
  }
}
