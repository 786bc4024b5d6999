// What is shown beside the pointer, or beside the cursor that keys moved.

import { make } from "../dom.js";
import type { PlaceText } from "./tell.js";

/** A text beside a place of the plot. */
export class Tips {
  readonly element = make("div", { class: "tl-tip", "aria-hidden": "true", hidden: "" });
  /** What stays beside the cursor until something else is chosen. */
  private kept: PlaceText | undefined;

  constructor(
    private readonly body: HTMLElement,
    private readonly plot: HTMLElement,
  ) {}

  /** Shows a text beside the pointer, in place of any other; nothing hides it. */
  show(placeText: PlaceText | undefined, x: number, y: number): void {
    this.kept = undefined;
    this.put(placeText, x, y);
  }

  hide(): void {
    this.kept = undefined;
    this.element.hidden = true;
  }

  /** Keeps a text beside the cursor; `follow` puts it there. */
  keep(placeText: PlaceText | undefined): void {
    this.hide();
    this.kept = placeText;
  }

  /** Puts the kept text to where the cursor is now, if it shows. */
  follow(x: number, y: number, shows: boolean): void {
    if (this.kept) this.put(shows ? this.kept : undefined, x, y);
  }

  private put(placeText: PlaceText | undefined, plotX: number, plotY: number): void {
    const tip = this.element;
    tip.hidden = !placeText;
    if (!placeText) return;
    const [box, plot] = [this.body.getBoundingClientRect(), this.plot.getBoundingClientRect()];
    const [x, y] = [plotX + plot.left - box.left, plotY + plot.top - box.top];
    tip.replaceChildren(make("b", {}, placeText.head), ...placeText.lines.map((line) => make("div", {}, line)));
    const room = this.body.clientWidth;
    const width = tip.offsetWidth;
    const left = x + 16 + width > room ? Math.max(0, x - width - 12) : x + 16;
    tip.style.left = `${left}px`;
    // Below the place, or above it where the window ends.
    const below = box.top + y + 16 + tip.offsetHeight <= document.documentElement.clientHeight;
    tip.style.top = `${below ? y + 16 : y - tip.offsetHeight - 10}px`;
  }
}
