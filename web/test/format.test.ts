import assert from "node:assert/strict";
import { test } from "node:test";
import { duration, human, parseSeconds, seconds, share, short } from "../src/format.js";
import { format, parse } from "../src/hash.js";
import { clock, decimalsOf, ticks } from "../src/timeline/ticks.js";

test("durations are written as crates/words writes them", () => {
  const known: [number, string][] = [
    [0, "0ns"], [999, "999ns"], [1_000, "1.000us"], [76_060, "76.06us"], [436_368, "436.4us"], [999_960, "1.000ms"],
    [163_995_430, "164.0ms"], [9_999_999_999, "10.00s"], [1_234_000_000_000, "1234s"],
  ];
  for (const [ns, text] of known) assert.equal(human(ns), text);
  assert.equal(duration(1500, false), "1500 ticks");
  assert.equal(short(2_500), "2.5us");
  assert.equal(share(1, 8), "12.50 %");
  assert.equal(share(1, 0), "0.00 %");
});

test("time stamps keep every nanosecond", () => {
  assert.equal(seconds(770_258_362_123n), "770.258362123");
  assert.equal(seconds(770_258_362_999n, 6), "770.258362");
  assert.equal(parseSeconds("770.258362123"), 770_258_362_123n);
  assert.equal(parseSeconds("770.25"), 770_250_000_000n);
  assert.equal(parseSeconds("1700000000.123456789"), 1_700_000_000_123_456_789n);
  for (const wrong of ["", "-1", "1e3", "1.2.3", "abc", "99999999999999999"]) assert.equal(parseSeconds(wrong), undefined);
});

test("ticks are round times of the recording's clock, however long it has run", () => {
  const begin = 1_700_000_000_123_456_789n;
  const found = ticks(begin, 0, 1000, 5, true);
  assert.deepEqual(found.map((tick) => tick.label), ["1700000000.123456800", "1700000000.123457000", "1700000000.123457200", "1700000000.123457400", "1700000000.123457600"].map((text) => text.slice(0, -2)));
  assert.deepEqual(found.map((tick) => tick.time), [11, 211, 411, 611, 811]);
  assert.deepEqual(ticks(100_000_733_142n, 0, 20_454_933_979, 10, true).map((tick) => tick.label), ["102", "104", "106", "108", "110", "112", "114", "116", "118", "120"]);
  assert.deepEqual(ticks(0n, 0, 100, 4, false).map((tick) => tick.label), ["0", "20", "40", "60", "80", "100"]);
  assert.deepEqual([1e9, 2e8, 1e6, 500, 1].map(decimalsOf), [0, 1, 3, 7, 9]);
  assert.equal(clock(begin, 1, true), "1700000000.123456790");
});

test("links are read and written", () => {
  const place = parse("#t=443.99,444.10&lane=tid-1700,a%2Cb&rec=1");
  assert.deepEqual(place, { from: 443_990_000_000n, to: 444_100_000_000n, lanes: ["tid-1700", "a,b"], recording: 1, path: "", vm: "", whole: false });
  assert.equal(format({ ...place!, lanes: [] }), "#t=443.990000,444.100000&rec=1");
  assert.equal(format({ from: 1n, to: 2n, lanes: ["a,b"], recording: 0, path: "", vm: "", whole: false }), "#t=0.000000001,0.000000002&lane=a%2Cb");
  assert.equal(format({ from: 0n, to: 10n ** 10n, lanes: [], recording: 0, path: "", vm: "", whole: false }), "#t=0.000,10.000");
  for (const place of ["#t=5,7", "#t=0.5,0.7&lane=cpu-1&rec=2", "#t=1,2&path=irqfd&vm=a%26b%20%231"]) assert.deepEqual(parse(format(parse(place)!)), parse(place));
  // The other way round, and one time alone.
  assert.equal(parse("#t=2,1")?.from, 1_000_000_000n);
  assert.equal(parse("#t=2.5")?.to, 2_500_000_000n);
  for (const none of ["", "#findings", "#t=", "#t=a,b", "#t=1,2,3", "#lane=tid-1", "#t=%", "#t=-1,2"]) assert.equal(parse(none), undefined);
  assert.deepEqual(parse("#t=1,2&rec=-5&lane=%E0%A4%A")?.lanes, ["%E0%A4%A"]);
});
