// How states look: a colour from the page's style, a pattern and a letter, so that they can be distinguished in grey too.

import type { Kind } from "./data.js";

/** Patterns of eight by eight: rows of bits. Where a bit is set, the darker (or lighter) shade is drawn. */
const PATTERNS: Record<string, readonly number[]> = {
  plain: [0, 0, 0, 0, 0, 0, 0, 0],
  rising: [0x80, 0x40, 0x20, 0x10, 0x08, 0x04, 0x02, 0x01],
  falling: [0x11, 0x22, 0x44, 0x88, 0x11, 0x22, 0x44, 0x88],
  dots: [0x88, 0x00, 0x00, 0x00, 0x22, 0x00, 0x00, 0x00],
  bars: [0x44, 0x44, 0x44, 0x44, 0x44, 0x44, 0x44, 0x44],
  lines: [0xff, 0x00, 0x00, 0x00, 0xff, 0x00, 0x00, 0x00],
  cross: [0x81, 0x42, 0x24, 0x18, 0x18, 0x24, 0x42, 0x81],
  checks: [0xc0, 0xc0, 0x00, 0x00, 0x0c, 0x0c, 0x00, 0x00],
};

/** What a colour means. States of one meaning have one colour or shades of it, and patterns tell them apart. */
export type Meaning = "guest" | "kvm" | "vmm" | "other" | "waiting" | "idle" | "unknown";

/** What meanings are called, in the order of the legend. */
export const MEANINGS: Record<Meaning, string> = {
  guest: "Guest",
  kvm: "KVM",
  vmm: "VMM",
  other: "Another task",
  waiting: "Waiting",
  idle: "Idle",
  unknown: "Not known",
};

/** A pattern, a letter and a meaning for each state that the data may have. */
const LOOKS: Record<string, readonly [keyof typeof PATTERNS, string, Meaning]> = {
  guest: ["plain", "G", "guest"],
  vcpu: ["lines", "C", "guest"],
  task: ["plain", "T", "guest"],
  interrupt: ["bars", "Q", "guest"],
  softirq: ["falling", "q", "guest"],
  kernel: ["plain", "K", "kvm"],
  kernel_blocked: ["rising", "k", "kvm"],
  poll: ["bars", "P", "kvm"],
  user: ["plain", "U", "vmm"],
  user_blocked: ["rising", "u", "vmm"],
  backend: ["lines", "E", "vmm"],
  running_of_vm: ["bars", "X", "vmm"],
  running: ["plain", "X", "other"],
  other: ["falling", "O", "other"],
  runnable: ["dots", "R", "waiting"],
  halted: ["plain", "H", "idle"],
  sleeping: ["plain", "S", "idle"],
  blocked: ["rising", "D", "idle"],
  idle: ["plain", "I", "idle"],
  unknown: ["checks", "?", "unknown"],
  outside: ["cross", "–", "unknown"],
};

/** What a state's colour means. */
export function meaningOf(id: string): Meaning {
  return LOOKS[id]?.[2] ?? "unknown";
}

/** A colour of a pixel, as canvases have it in memory on machines with the lowest byte first: alpha, blue, green, red. */
function pixel(r: number, g: number, b: number): number {
  return ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0;
}

/** Reads `#rgb` and `#rrggbb`. */
export function parseColour(text: string): [number, number, number] | undefined {
  let digits = /^#([0-9a-f]{3}|[0-9a-f]{6})$/i.exec(text.trim())?.[1];
  if (!digits) return undefined;
  if (digits.length === 3) digits = [...digits].map((one) => one + one).join("");
  const value = Number.parseInt(digits, 16);
  return [(value >> 16) & 255, (value >> 8) & 255, value & 255];
}

/** The relative luminance of a colour (WCAG 2.2). */
export function luminance([r, g, b]: readonly [number, number, number]): number {
  const linear = (value: number): number => {
    const part = value / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  };
  return 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
}

/** How a state looks. */
export interface Look {
  letter: string;
  fill: string;
  pixel: number;
  /** The colour of text on it. */
  ink: string;
  /** Its pixels: `size` by `size`. */
  tile: Uint32Array;
}

/** All colours of a picture. */
export interface Palette {
  /** Pixels of a tile's side: eight, or sixteen on fine screens. */
  size: number;
  looks: Look[];
  /** The same for threads of a VM: that they run is the VMM's time, and no other task's. */
  ofVm: Look[];
  /** What was left out or not recorded. */
  left: Look;
  background: string;
  backgroundPixel: number;
  laneBackground: number;
  softPixel: number;
  text: string;
  soft: string;
  line: string;
  mark: string;
  lost: string;
  path: string;
  slow: string;
  select: string;
}

const GREY: [number, number, number] = [128, 128, 128];

/** Reads the colours that the page's style has now. */
export function palette(kinds: readonly Kind[], element: Element, fine: boolean): Palette {
  const style = getComputedStyle(element);
  const named = (name: string, other: string): string => style.getPropertyValue(name).trim() || other;
  const colour = (name: string, other: string): [number, number, number] => parseColour(named(name, other)) ?? GREY;
  const size = fine ? 16 : 8;
  const lookOf = (kind: Pick<Kind, "id" | "label">): Look => {
    const [pattern, letter] = LOOKS[kind.id] ?? ["checks", (kind.label[0] ?? "?").toUpperCase()];
    const name = `--state-${kind.id.replace(/[^a-z0-9_-]/gi, "")}`;
    const rgb = colour(name, "#888888");
    const light = luminance(rgb) > 0.18;
    // The other shade: darker on light colours, lighter on dark ones.
    const shade = rgb.map((value) => Math.round(light ? value * 0.72 : value + (255 - value) * 0.3)) as [number, number, number];
    const rows = PATTERNS[pattern] ?? [];
    const [base, other] = [pixel(...rgb), pixel(...shade)];
    const step = size / 8;
    const tile = new Uint32Array(size * size);
    for (let y = 0; y < size; y++) {
      for (let x = 0; x < size; x++) {
        const bit = ((rows[Math.floor(y / step)] ?? 0) >> (7 - Math.floor(x / step))) & 1;
        tile[y * size + x] = bit ? other : base;
      }
    }
    return { letter, fill: `rgb(${rgb.join(",")})`, pixel: base, ink: light ? "#000" : "#fff", tile };
  };
  const looks = kinds.map(lookOf);
  const running = lookOf({ id: "running_of_vm", label: "running" });
  return {
    size,
    looks,
    ofVm: looks.map((look, at) => (kinds[at]?.id === "running" ? running : look)),
    left: lookOf({ id: "outside", label: "left out" }),
    background: named("--bg", "#ffffff"),
    backgroundPixel: pixel(...colour("--bg", "#ffffff")),
    laneBackground: pixel(...colour("--lane", "#f4f4f4")),
    softPixel: pixel(...colour("--soft", "#555555")),
    text: named("--text", "#111111"),
    soft: named("--soft", "#555555"),
    line: named("--line", "#cccccc"),
    mark: named("--mark-finding", "#b00020"),
    lost: named("--mark-lost", "#7a0070"),
    path: named("--mark-path", "#004a9f"),
    slow: named("--mark-slow", "#a5311a"),
    select: named("--accent", "#0b57d0"),
  };
}
