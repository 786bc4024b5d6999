// What a chosen instance or moment is explained by: who woke whom, and who ran on the CPU meanwhile. For one at a time, since all
// arrows at once would hide what they are about.

import { make } from "../dom.js";
import { duration } from "../format.js";
import type { Data, Instance } from "./data.js";
import { type Meanwhile, meanwhile, panel } from "./meanwhile.js";
import type { Palette } from "./palette.js";
import { type Row, rowOf } from "./rows.js";
import { instanceOf, stageTable } from "./stages.js";
import { clock } from "./ticks.js";
import type { View } from "./view.js";
import { laneOf, laneOfCpu, type Wake, Wakes, wakeTexts } from "./wakes.js";

/** Who ran most is named in the line of text. */
const NAMED = 2;

/** What is explained now. */
export class Focus {
  readonly element = make("div", { class: "tl-focus" });
  wakes: readonly Wake[] = [];
  waited: Meanwhile | undefined;
  /** The instance whose way is drawn. */
  instance: Instance | undefined;
  private all: Wakes | undefined;

  /** `command` prints what the scheduler did, without a CPU and times, or what paths are, without their names. */
  constructor(
    private readonly data: Data,
    private readonly command: (of: "sched" | "paths") => string,
  ) {}

  /** They are looked for when somebody asks first. */
  private get known(): Wakes {
    this.all ??= new Wakes(this.data);
    return this.all;
  }

  clear(): void {
    this.wakes = [];
    this.waited = undefined;
    this.instance = undefined;
    this.element.replaceChildren();
  }

  /** Explains an instance of a path; returns lines that say it. */
  mark(line: number, index: number): string[] {
    this.clear();
    const marks = this.data.marks[line];
    if (!marks?.id.startsWith("path:")) return [];
    const lines = this.show(this.known.ofMark(line, index));
    this.instance = instanceOf(marks, index);
    if (!this.instance) return lines;
    // Its own steps say more than the wake-ups among them.
    this.wakes = [];
    const base = this.command("paths");
    const isPlain = /^[\w.-]+$/.test(marks.label);
    const command = base && isPlain ? `${base} --path ${marks.label} --instance ${this.instance.number}` : "";
    this.element.prepend(stageTable(this.data, marks, this.instance, command));
    return [];
  }

  /** Explains a moment of a lane; returns lines that say it. */
  moment(index: number, time: number): string[] {
    this.clear();
    const lane = this.data.lanes[index];
    if (!lane) return [];
    this.waited = meanwhile(this.data, lane, time);
    const lines = this.show(this.known.ofMoment(lane, time));
    const { waited, data } = this;
    if (!waited) return lines;
    const base = this.command("sched");
    const times = `${clock(data.begin, waited.from, data.nanoseconds)},${clock(data.begin, waited.to, data.nanoseconds)}`;
    this.element.prepend(panel(data, waited, base && waited.cpu >= 0 ? `${base} --cpu ${waited.cpu} --time ${times}` : ""));
    const ran = waited.runners.slice(0, NAMED).map(({ who, ns }) => `${who} ${duration(ns, data.nanoseconds)}`);
    const more = waited.runners.length > NAMED ? ` and ${waited.runners.length - NAMED} more` : "";
    return [...(ran.length > 0 ? [`on CPU ${waited.cpu} ran meanwhile: ${ran.join(", ")}${more}`] : []), ...lines];
  }

  /** Where the CPU is that somebody waited for. */
  cpuIn(rows: readonly Row[], groups: readonly string[]): { row: Row; from: number; to: number } | undefined {
    const { waited } = this;
    const row = waited && rowOf(rows, groups, waited.cpuLane);
    return waited && row ? { row, from: waited.from, to: waited.to } : undefined;
  }

  private show(wakes: readonly Wake[]): string[] {
    this.wakes = wakes;
    const texts = wakeTexts(this.data, wakes);
    if (texts.length > 0) {
      const list = make("ol", {}, ...texts.map((text) => make("li", {}, text)));
      this.element.append(make("div", { class: "tl-wakes" }, make("p", {}, "Who woke whom, the last one first:"), list));
    }
    return texts.slice(0, 1);
  }
}

/** An arrow: from the waker's row down or up to the row of who was woken, and on to where that one ran. */
export interface Arrow {
  x: number;
  from: number | undefined;
  to: number;
  ran: number | undefined;
}

/** Where arrows are, in pixels of the style. A waker without a row, such as a thread without a lane, has none to begin at. */
export function arrows(data: Data, wakes: readonly Wake[], rows: readonly Row[], groups: readonly string[], view: View, width: number): Arrow[] {
  const middle = (row: Row | undefined): number | undefined => (row ? row.top + row.height / 2 : undefined);
  return wakes.flatMap((wake) => {
    const to = middle(rowOf(rows, groups, laneOf(data, wake.wakee)));
    if (to === undefined) return [];
    // Interrupts wake on a CPU, in the idle task or in whoever has it.
    const own = rowOf(rows, groups, laneOf(data, wake.waker));
    const from = middle(own ?? rowOf(rows, groups, laneOfCpu(data, wake.cpu)));
    return [{ x: view.x(wake.time, width), from, to, ran: wake.ran === undefined ? undefined : view.x(wake.ran, width) }];
  });
}

/** Draws arrows and the CPU's stretch that is explained. */
export function draw(context: CanvasRenderingContext2D, list: readonly Arrow[], scroll: number, palette: Palette): void {
  // A light line below each dark one, so that it is seen on every state.
  for (const [colour, width] of [[palette.background, 4], [palette.text, 1.5]] as const) {
    context.strokeStyle = context.fillStyle = colour;
    context.lineWidth = width;
    for (const { x, from, to, ran } of list) {
      const [top, foot] = [from === undefined ? undefined : from - scroll, to - scroll];
      context.beginPath();
      if (top !== undefined) {
        context.moveTo(x, top);
        context.lineTo(x, foot);
      }
      if (ran !== undefined) {
        context.moveTo(x, foot);
        context.lineTo(ran, foot);
      }
      context.stroke();
      context.beginPath();
      if (top !== undefined && top !== foot) {
        const up = foot < top ? 1 : -1;
        context.moveTo(x, foot);
        context.lineTo(x - 4, foot + up * 8);
        context.lineTo(x + 4, foot + up * 8);
        context.closePath();
      }
      if (ran !== undefined) {
        context.moveTo(ran + 3.5, foot);
        context.arc(ran, foot, 3.5, 0, 2 * Math.PI);
      }
      context.fill();
    }
  }
}
