// Which part of a recording shows, and what time a pixel is.

/** The shortest range that is shown: some nanoseconds, so that single events of one CPU lie apart. */
const SHORTEST = 100;

/** A range of a recording, relative to its begin. */
export class View {
  from = 0;
  to: number;

  constructor(readonly length: number) {
    this.to = length;
  }

  get span(): number {
    return this.to - this.from;
  }

  get shortest(): number {
    return Math.min(this.length, SHORTEST);
  }

  /** Shows a range, or what is nearest to it within the recording. */
  set(from: number, to: number): void {
    if (!Number.isFinite(from) || !Number.isFinite(to)) return;
    const span = Math.min(Math.max(Math.abs(to - from), this.shortest), this.length);
    const middle = (from + to) / 2;
    this.from = Math.min(Math.max(middle - span / 2, 0), this.length - span);
    this.to = this.from + span;
  }

  /** Moves by so many times what shows. */
  pan(parts: number): void {
    const span = this.span;
    this.set(this.from + parts * span, this.to + parts * span);
  }

  /** Zooms by a factor (below one: closer) around a time, which stays where it is. */
  zoom(factor: number, around: number): void {
    const span = Math.min(Math.max(this.span * factor, this.shortest), this.length);
    const part = (around - this.from) / this.span;
    const from = Math.min(Math.max(around - part * span, 0), this.length - span);
    this.from = from;
    this.to = from + span;
  }

  /** Moves as little as makes a time show, with some room around it. */
  reveal(time: number): void {
    const room = this.span / 10;
    if (time < this.from + room) this.set(time - room, time - room + this.span);
    else if (time > this.to - room) this.set(time + room - this.span, time + room);
  }

  x(time: number, width: number): number {
    return ((time - this.from) / this.span) * width;
  }

  time(x: number, width: number): number {
    return this.from + (x / width) * this.span;
  }
}
