// Keys of a timeline, to what they ask of it.

/** What keys ask for. */
export interface Keyed {
  readonly view: { readonly from: number; readonly to: number; readonly span: number };
  readonly data: { readonly length: number };
  pan(parts: number): void;
  zoom(factor: number): void;
  fit(): void;
  /** To the next row, or the one before. */
  step(by: number): void;
  /** To the next stretch of a lane, or the one before. */
  stretch(by: number): void;
  toMark(by: number): void;
  toSlow(by: number): void;
  /** Zooms to what is chosen. */
  closer(): void;
  clear(): void;
}

/** How far a key moves, as a part of what shows; with Shift further. */
const PART = 0.125;
const FURTHER = 0.5;

const ACTIONS: Record<string, (asked: Keyed, part: number) => void> = {
  ArrowLeft: (asked, part) => asked.pan(-part),
  ArrowRight: (asked, part) => asked.pan(part),
  a: (asked, part) => asked.pan(-part),
  d: (asked, part) => asked.pan(part),
  w: (asked) => asked.zoom(1 / 1.5),
  s: (asked) => asked.zoom(1.5),
  "+": (asked) => asked.zoom(1 / 1.5),
  "=": (asked) => asked.zoom(1 / 1.5),
  "-": (asked) => asked.zoom(1.5),
  "0": (asked) => asked.fit(),
  Home: (asked) => asked.pan(-asked.view.from / asked.view.span),
  End: (asked) => asked.pan((asked.data.length - asked.view.to) / asked.view.span),
  ArrowUp: (asked) => asked.step(-1),
  ArrowDown: (asked) => asked.step(1),
  ",": (asked) => asked.stretch(-1),
  ".": (asked) => asked.stretch(1),
  n: (asked) => asked.toMark(1),
  p: (asked) => asked.toMark(-1),
  j: (asked) => asked.toSlow(1),
  k: (asked) => asked.toSlow(-1),
  f: (asked) => asked.closer(),
  Enter: (asked) => asked.closer(),
  Escape: (asked) => asked.clear(),
};

/** Does what a key asks for; returns whether it is one of a timeline's. */
export function act(asked: Keyed, { key, shiftKey }: KeyboardEvent): boolean {
  const action = ACTIONS[key.length === 1 ? key.toLowerCase() : key];
  action?.(asked, shiftKey ? FURTHER : PART);
  return action !== undefined;
}
