// The elements of a timeline.

import { copier } from "../copy.js";
import { button, make } from "../dom.js";
import { Tips } from "./tips.js";

/** What the elements ask for. */
export interface Actions {
  zoom(factor: number): void;
  fit(): void;
  mark(step: number): void;
  slow(step: number): void;
  link(): string;
  toSelection(): void;
  clear(): void;
  foldVms(): void;
}

/** Keys, as the help lists them. */
const KEYS: readonly (readonly [string, string])[] = [
  ["wheel, pinch, W S, + -", "zoom in and out"],
  ["drag, Shift+wheel, A D, ← →", "move"],
  ["drag on the ruler, Shift+drag", "select a range; F or Enter zooms to it, Escape clears it"],
  ["double click, 0", "show the whole recording"],
  ["Home, End", "its begin, its end"],
  ["click, ↑ ↓", "choose a lane; the line above the picture says what is there"],
  [", and .", "the stretch before, the next one; Enter zooms to it"],
  ["N P", "next and previous mark"],
  ["J K", "next and previous slow instance of a path"],
];

/** The elements of a timeline, made once. */
export class Frame {
  readonly tools = make("div", { class: "tl-tools", role: "group", "aria-label": "Timeline" });
  readonly range = make("span", { class: "tl-range" });
  readonly legend = make("div", { class: "tl-legend" });
  readonly overview = make("canvas", { class: "tl-overview", "aria-hidden": "true" });
  readonly ruler = make("canvas", { class: "tl-ruler", "aria-hidden": "true" });
  readonly labels = make("div", { class: "tl-labels" });
  readonly canvas = make("canvas", { class: "tl-canvas", "aria-hidden": "true" });
  readonly plot: HTMLElement;
  readonly scroll = make("div", { class: "tl-scroll" });
  readonly status = make("p", { class: "tl-status", role: "status", "aria-live": "polite" }, "Point at something or choose a lane to read what it is.");
  readonly body = make("div", { class: "tl-frame" });
  readonly keys = make("details", { class: "tl-keys" }, make("summary", {}, "Mouse and keys"));
  readonly tips: Tips;
  private readonly vms = make("button", { type: "button" });
  readonly selectionTools = make("span", { class: "tl-selection", hidden: "" });

  constructor(host: HTMLElement, actions: Actions, recording: number, has: { slow: boolean; vms: boolean }) {
    this.vms.addEventListener("click", () => actions.foldVms());
    const help = `timeline-keys-${recording}`;
    this.plot = make(
      "div",
      { class: "tl-plot", tabindex: "0", role: "application", "aria-label": "Timeline: lanes by state over time", "aria-describedby": help },
      this.canvas,
    );
    this.selectionTools.append(
      button("Zoom to selection", () => actions.toSelection(), { class: "small" }),
      " ",
      button("Clear", () => actions.clear(), { class: "small", "aria-label": "Clear the selection" }),
    );
    const slow = button("◂ Slow", () => actions.slow(-1), { "aria-label": "Previous slow instance", title: "Previous slow instance (K)" });
    const slower = button("Slow ▸", () => actions.slow(1), { "aria-label": "Next slow instance", title: "Next slow instance (J)" });
    this.tools.append(
      button("+", () => actions.zoom(0.5), { "aria-label": "Zoom in", title: "Zoom in (W, +)" }),
      button("−", () => actions.zoom(2), { "aria-label": "Zoom out", title: "Zoom out (S, -)" }),
      button("Fit", () => actions.fit(), { title: "Show the whole recording (0)" }),
      button("◂ Mark", () => actions.mark(-1), { "aria-label": "Previous mark", title: "Previous mark (P)" }),
      button("Mark ▸", () => actions.mark(1), { "aria-label": "Next mark", title: "Next mark (N)" }),
      ...(has.slow ? [slow, slower] : []),
      ...(has.vms ? [this.vms] : []),
      copier("Copy link", () => actions.link(), { class: "tl-link" }),
      this.selectionTools,
      this.range,
    );
    const list = make("dl");
    for (const [keys, what] of KEYS) list.append(make("dt", {}, keys), make("dd", {}, what));
    this.keys.append(list);
    const short = make("p", { class: "sr-only", id: help }, KEYS.map(([key, what]) => `${key}: ${what}.`).join(" "));
    this.scroll.append(this.labels, this.plot);
    this.tips = new Tips(this.body, this.plot);
    this.body.append(this.overview, this.ruler, this.scroll, this.tips.element);
    host.append(this.tools, this.legend, this.status, this.body, short);
  }

  /** Says what the button of all VMs would do. */
  vmsAre(folded: boolean): void {
    this.vms.textContent = folded ? "Unfold VMs" : "Fold VMs";
  }
}
