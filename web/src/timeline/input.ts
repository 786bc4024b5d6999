// Mouse, wheel, touch and keys, to what they ask of a timeline.

import type { View } from "./view.js";

/** What is asked for. */
export interface Asked {
  /** The view was changed. */
  moved(): void;
  hover(x: number, y: number): void;
  leave(): void;
  click(x: number, y: number): void;
  fit(): void;
  /** A range is being selected. */
  selected(from: number, to: number): void;
  /** Keys; returns whether it was one of the timeline's. */
  key(event: KeyboardEvent): boolean;
}

/** A wheel that began to turn elsewhere goes on to scroll the page, so that nobody is caught in the picture on the way down. A turn that began longer ago than this is another one. */
const SAME_GESTURE_MS = 250;

/** How far a pointer may move in a click. */
const CLICK_PX = 4;

/** Zooms and moves a view as pointers do. */
export class Input {
  private lastWheel = { time: -Infinity, inside: false, whole: false };
  /** Pointers that are down, and where they were last. */
  private readonly down = new Map<number, { x: number; y: number }>();
  private isDrag = false;

  constructor(
    private readonly plot: HTMLElement,
    private readonly scroll: HTMLElement,
    private readonly view: View,
    private readonly asked: Asked,
  ) {
    this.wheel();
    this.drag();
    plot.addEventListener("dblclick", () => asked.fit());
    plot.addEventListener("pointermove", (event) => {
      if (event.buttons === 0) asked.hover(...this.at(event));
      else asked.leave();
    });
    plot.addEventListener("pointerleave", () => asked.leave());
    plot.addEventListener("click", (event) => {
      // A click that ends a drag or the selection of a range is none.
      if (!event.shiftKey && !this.isDrag) asked.click(...this.at(event));
    });
    plot.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      if (asked.key(event)) event.preventDefault();
    });
    this.selects(plot, true);
  }

  private get width(): number {
    return Math.max(1, this.plot.clientWidth);
  }

  /** Where an event is, in the plot. */
  private at(event: MouseEvent): [number, number] {
    const box = this.plot.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  }

  /** Moves the view with one pointer; two of them zoom, and what is between them stays there. */
  private drag(): void {
    const { plot, down } = this;
    plot.addEventListener("pointerdown", (event) => {
      if (event.shiftKey || event.ctrlKey || event.button !== 0) return;
      if (down.size === 0) this.isDrag = false;
      down.set(event.pointerId, { x: event.clientX, y: event.clientY });
    });
    plot.addEventListener("pointermove", (event) => {
      const before = down.get(event.pointerId);
      if (!before) return;
      const now = { x: event.clientX, y: event.clientY };
      if (!this.isDrag && Math.hypot(now.x - before.x, now.y - before.y) < CLICK_PX) return;
      if (!this.isDrag) {
        this.isDrag = true;
        plot.setPointerCapture(event.pointerId);
      }
      const other = [...down].find(([id]) => id !== event.pointerId)?.[1];
      if (other) this.pinch(before, now, other.x);
      else {
        this.view.pan((before.x - now.x) / this.width);
        if (event.pointerType === "mouse") this.scroll.scrollTop += before.y - now.y;
      }
      down.set(event.pointerId, now);
      this.asked.moved();
    });
    const up = (event: PointerEvent): void => void down.delete(event.pointerId);
    plot.addEventListener("pointerup", up);
    plot.addEventListener("pointercancel", up);
    plot.addEventListener("lostpointercapture", up);
  }

  private pinch(before: { x: number }, now: { x: number }, other: number): void {
    const [wide, wider] = [Math.abs(before.x - other), Math.abs(now.x - other)];
    if (wide < 10 || wider < 10) return;
    const left = this.plot.getBoundingClientRect().left;
    this.view.zoom(wide / wider, this.view.time(other - left, this.width));
  }

  private isZoom(event: WheelEvent): boolean {
    return !event.shiftKey && Math.abs(event.deltaX) <= Math.abs(event.deltaY);
  }

  private wheel(): void {
    const note = (event: WheelEvent): void => {
      const isNew = event.timeStamp - this.lastWheel.time > SAME_GESTURE_MS;
      const inside = event.target instanceof Node && this.plot.contains(event.target);
      const whole = isNew ? this.view.span >= this.view.length : this.lastWheel.whole;
      this.lastWheel = { time: event.timeStamp, inside: inside && (isNew || this.lastWheel.inside), whole };
    };
    window.addEventListener("wheel", note, { capture: true, passive: true });
    this.plot.addEventListener(
      "wheel",
      (event) => {
        if (!this.lastWheel.inside) return;
        // There is nothing to zoom out to: the page scrolls on.
        if (this.lastWheel.whole && this.isZoom(event) && event.deltaY > 0 && this.view.span >= this.view.length) return;
        event.preventDefault();
        // Some browsers count in lines, and a pinch on a touchpad is a wheel with the control key and small steps.
        const unit = (event.deltaMode === 1 ? 20 : event.deltaMode === 2 ? 400 : 1) * (event.ctrlKey ? 10 : 1);
        if (this.isZoom(event)) {
          const [x] = this.at(event);
          this.view.zoom(2 ** (event.deltaY * unit * 0.003), this.view.time(x, this.width));
        } else this.view.pan(((event.deltaX || event.deltaY) * unit) / this.width);
        this.asked.moved();
      },
      { passive: false },
    );
  }

  /** Lets a range be selected by dragging on an element as wide as the plot. */
  selects(element: HTMLElement, needsShift: boolean): void {
    let start: number | undefined;
    const time = (event: PointerEvent): number => {
      const box = element.getBoundingClientRect();
      const x = Math.min(Math.max(event.clientX - box.left, 0), box.width);
      return this.view.time(x, box.width);
    };
    element.addEventListener("pointerdown", (event) => {
      if (event.button !== 0 || event.shiftKey !== needsShift) return;
      start = time(event);
      element.setPointerCapture(event.pointerId);
      event.preventDefault();
      this.plot.focus({ preventScroll: true });
    });
    element.addEventListener("pointermove", (event) => {
      if (start === undefined) return;
      const now = time(event);
      this.asked.selected(Math.min(start, now), Math.max(start, now));
    });
    const stop = (): void => (start = undefined);
    element.addEventListener("pointerup", stop);
    element.addEventListener("pointercancel", stop);
  }

  /** Lets the view be moved on the overview: what shows is dragged, and a new range is drawn beside it. */
  overview(element: HTMLElement): void {
    let grip: { time: number; offset: number | undefined } | undefined;
    const time = (event: PointerEvent): number => {
      const box = element.getBoundingClientRect();
      return Math.min(Math.max((event.clientX - box.left) / box.width, 0), 1) * this.view.length;
    };
    element.addEventListener("pointerdown", (event) => {
      if (event.button !== 0) return;
      const at = time(event);
      const { from, to, span, length } = this.view;
      // All that shows cannot be moved; what shows as a few pixels can be taken beside it too.
      const near = Math.max(0, (length / element.clientWidth) * 4 - span / 2);
      const inside = at >= from - near && at <= to + near && span < length * 0.98;
      grip = { time: at, offset: inside ? at - from : undefined };
      element.setPointerCapture(event.pointerId);
      event.preventDefault();
    });
    element.addEventListener("pointermove", (event) => {
      if (!grip) return;
      const now = time(event);
      const { span } = this.view;
      if (grip.offset !== undefined) this.view.set(now - grip.offset, now - grip.offset + span);
      else if (Math.abs(now - grip.time) > this.view.length / 500) this.view.set(Math.min(grip.time, now), Math.max(grip.time, now));
      else return;
      this.asked.moved();
    });
    element.addEventListener("pointerup", (event) => {
      // A click beside what shows goes there.
      const at = time(event);
      if (grip && grip.offset === undefined && Math.abs(at - grip.time) <= this.view.length / 500 && this.view.span < this.view.length) {
        this.view.set(at - this.view.span / 2, at + this.view.span / 2);
          this.asked.moved();
      }
      grip = undefined;
    });
    element.addEventListener("pointercancel", () => (grip = undefined));
    element.addEventListener("dblclick", () => this.asked.fit());
  }
}
