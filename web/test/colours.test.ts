import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { luminance, meaningOf, parseColour } from "../src/timeline/palette.js";

/** The colours of light and of dark. */
function schemes(): Record<string, Map<string, string>> {
  const text = readFileSync("src/style/colours.css", "utf8");
  const [light, dark] = text.split("@media");
  const read = (part: string): [string, string][] => [...part.matchAll(/(--[a-z0-9_-]+):\s*(#[0-9a-f]+);/gi)].map((found) => [found[1]!, found[2]!]);
  return { light: new Map(read(light!)), dark: new Map([...read(light!), ...read(dark!)]) };
}

/** The contrast of two colours (WCAG 2.2). */
function contrast(a: string, b: string): number {
  const [x, y] = [a, b].map((one) => luminance(parseColour(one)!) + 0.05) as [number, number];
  return Math.max(x, y) / Math.min(x, y);
}

test("texts can be read on what they stand on (WCAG AA)", () => {
  for (const [scheme, colours] of Object.entries(schemes())) {
    const colour = (name: string): string => colours.get(name) ?? assert.fail(`${scheme} has no ${name}`);
    const least = (a: string, b: string, most = 4.5): void => {
      const found = contrast(a, b);
      assert.ok(found >= most, `${scheme}: ${a} on ${b} has a contrast of ${found.toFixed(2)}`);
    };
    for (const ground of ["--bg", "--panel"]) {
      for (const text of ["--text", "--soft", "--accent", "--severity-high", "--severity-medium", "--severity-low"]) least(colour(text), colour(ground));
    }
    least(colour("--hit-text"), colour("--hit"));
    least(colour("--hit-text"), colour("--hit-now"));
    least(colour("--accent-text"), colour("--accent"));
    // Letters on states are black or white, as `palette` chooses.
    for (const [name, state] of colours) {
      if (name.startsWith("--state-")) least(luminance(parseColour(state)!) > 0.18 ? "#000000" : "#ffffff", state);
    }
    // Lines and markers, which are no texts.
    for (let at = 1; at <= 6; at++) least(colour(`--series-${at}`), colour("--bg"), 3);
    for (const mark of ["--mark-finding", "--mark-lost", "--mark-path", "--mark-slow"]) least(colour(mark), colour("--bg"), 3);
  }
});

test("states of one kind of lane differ in colour by more than their hue, or by their pattern", () => {
  // Those that are dark, light and in between; that of letters differs anyway.
  const { light } = schemes();
  const found = ["guest", "kernel", "user", "halted", "unknown"].map((state) => luminance(parseColour(light!.get(`--state-${state}`)!)!));
  const sorted = [...found].sort((a, b) => a - b);
  for (let at = 1; at < sorted.length; at++) assert.ok((sorted[at]! + 0.05) / (sorted[at - 1]! + 0.05) > 1.2, `${sorted}`);
});

/** The hue of a colour in degrees; nothing of one that is nearly grey. */
function hue(text: string): number | undefined {
  const [r, g, b] = parseColour(text)!;
  const [most, least] = [Math.max(r, g, b), Math.min(r, g, b)];
  if (most - least < 24) return undefined;
  const part = most === r ? ((g - b) / (most - least)) % 6 : most === g ? (b - r) / (most - least) + 2 : (r - g) / (most - least) + 4;
  return (part * 60 + 360) % 360;
}

test("one colour has one meaning", () => {
  for (const [scheme, colours] of Object.entries(schemes())) {
    const states = [...colours].filter(([name]) => name.startsWith("--state-")).map(([name, colour]) => ({ id: name.slice(8), colour }));
    assert.equal(states.length, 21);
    for (const a of states) {
      for (const b of states) {
        const isSame = meaningOf(a.id) === meaningOf(b.id);
        if (!isSame) assert.notEqual(a.colour, b.colour, `${scheme}: ${a.id} and ${b.id}`);
        const [x, y] = [hue(a.colour), hue(b.colour)];
        const apart = x === undefined || y === undefined ? undefined : Math.min(Math.abs(x - y), 360 - Math.abs(x - y));
        // Shades of one colour, and colours that are far from each other.
        if (isSame) assert.ok((apart ?? 0) < 15 && (x === undefined) === (y === undefined), `${scheme}: ${a.id} and ${b.id}`);
        else assert.ok(apart === undefined || apart > 25, `${scheme}: ${a.id} and ${b.id} are ${apart} degrees apart`);
      }
    }
  }
});
