import assert from "node:assert/strict";
import { test } from "node:test";
import { arrows } from "../src/timeline/focus.js";
import { headText, meanwhile } from "../src/timeline/meanwhile.js";
import { groupsOf, rows } from "../src/timeline/rows.js";
import { View } from "../src/timeline/view.js";
import { tidOf, Wakes, wakeTexts } from "../src/timeline/wakes.js";
import { data } from "./support.js";

const NAMES = [
  "", "sched_waking", "sched_wakeup", "sched_switch",
  "comm=vhost-9 pid=30 prio=120 target_cpu=001",
  // A thread that is called like a field.
  "comm=CPU 0/KVM pid=9 prio=1 pid=10 prio=120 target_cpu=002",
  "prev_comm=x prev_pid=1 prev_prio=120 prev_state=S ==> next_comm=vhost-9 next_pid=30 next_prio=120",
  "prev_comm=next_pid=4 prev_pid=1 prev_prio=120 prev_state=R ==> next_comm=CPU 0/KVM next_pid=10 next_prio=120",
  "CPU 0/KVM:10", "socat:77",
];
const KINDS = [["guest", "vcpu"], ["halted", "vcpu"], ["runnable", "vcpu"], ["running", "thread"], ["sleeping", "thread"], ["idle", "cpu"], ["other", "cpu"]].map(([id, of]) => ({ id, of, label: id }));
const lane = (id: string, group: string, label: string, cells: number[]): object => ({ id, group, label, detail: "", vm: group === "cpus" ? "" : "a", cells });

/** An interrupt wakes vhost-9 at 1000, which runs at 1400 and wakes the vCPU at 2000; that runs at 5000, behind socat. */
const SAMPLE = data([], {
  length_ns: 10_000,
  names: NAMES,
  kinds: KINDS,
  lanes: [
    lane("tid-10", "vcpus", "vCPU 0", [0, 2000, 1, 0, 0, -1, 0, 3000, 2, 0, 9, 2, 0, 5000, 0, 0, 0, 2]),
    lane("tid-30", "threads", "vhost-9", [0, 1400, 4, 0, 0, -1, 0, 1600, 3, 0, 0, 1]),
    // Idle, socat, a sum of which half lies in the wait, and from 5000 the vCPU.
    lane("cpu-2", "cpus", "CPU 2", [0, 2500, 5, 0, 0, 2, 0, 1500, 6, 9, 0, 2, 0, 2000, -2, 7, 5, 500, 6, 1500]),
  ],
  marks: [{ id: "path:irq", label: "irq", marks: [900, 4200, 1, 4200, 8, 0, 100, 3, 80, 0] }],
  windows: [{ begin: 0, end: 10_000, why: "x", events: [
    1000, 1, 0, -1, 1, 4, 50, 1, 0, -1, 2, 4, 350, 1, 0, -1, 3, 6, 600, 1, 30, 1, 1, 5, 10, 2, 77, -1, 2, 5, 2990, 2, 77, -1, 3, 7,
  ] }],
});

test("wake-ups are read as the kernel prints them, and two events are one", () => {
  const wakes = new Wakes(SAMPLE);
  assert.equal(wakes.count, 2);
  assert.deepEqual(wakes.before(10, 9999), { time: 2000, waker: 30, cpu: 1, wakee: 10, ran: 5000, ranOn: 2 });
  assert.deepEqual([wakes.before(10, 1999), wakes.before(4, 9999), wakes.before(9, 9999)], [undefined, undefined, undefined]);
  assert.deepEqual(["CPU 0/KVM:10", "a:b", ""].map(tidOf), [10, undefined, undefined]);
});

test("an instance is followed back over those that woke each other, to its beginning", () => {
  const wakes = new Wakes(SAMPLE);
  assert.deepEqual(wakes.ofMark(0, 0).map(({ wakee, waker, ran }) => [wakee, waker, ran]), [[10, 30, 5000], [30, 0, 1400]]);
  // No further back than where it began; and of one of several threads nothing is known.
  assert.deepEqual(wakes.chain(10, 1500, 9000).map(({ wakee }) => wakee), [10]);
  assert.deepEqual(wakes.ofMark(0, 1), []);
  const [vcpu, vhost] = SAMPLE.lanes as [typeof SAMPLE.lanes[0], typeof SAMPLE.lanes[0]];
  // While it waits: by whom it was woken. While it sleeps: by whom it will be.
  assert.deepEqual(wakes.ofMoment(vcpu!, 2300).map(({ time }) => time), [2000]);
  assert.deepEqual(wakes.ofMoment(vhost!, 700).map(({ time }) => time), [1000]);
  assert.deepEqual(wakeTexts(SAMPLE, wakes.ofMark(0, 0)), [
    "vCPU 0 (thread 10) was woken at 443.995735142 by vhost-9 (thread 30); it ran 3.000us later on CPU 2",
    "vhost-9 (thread 30) was woken at 443.995734142 by an interrupt on idle CPU 1; it ran 400ns later on CPU 1",
  ]);
});

test("without the switch, a lane's stretches say when it ran", () => {
  const cut = data([], { ...JSON.parse(JSON.stringify({ names: NAMES, kinds: KINDS, length_ns: 10_000 })),
    lanes: [lane("tid-10", "vcpus", "vCPU 0", [0, 2000, 1, 0, 0, -1, 0, 3000, 2, 0, 9, 2, 0, 5000, 0, 0, 0, 2])],
    windows: [{ begin: 0, end: 3000, why: "", events: [2000, 1, 30, -1, 1, 5] }] });
  assert.equal(new Wakes(cut).before(10, 9999)?.ran, 5000);
});

test("arrows lead from row to row, and to a folded VM's", () => {
  const wakes = new Wakes(SAMPLE).ofMark(0, 0);
  const groups = groupsOf(SAMPLE);
  const [open, shut] = [rows(SAMPLE, new Set()), rows(SAMPLE, new Set(["vm:a"]))];
  const middle = (all: typeof open, label: string): number => {
    const row = all.find((one) => one.label === label)!;
    return row.top + row.height / 2;
  };
  const view = new View(10_000);
  const [y, vhost] = [middle(open, "vCPU 0"), middle(open, "vhost-9")];
  // The interrupt's CPU has no lane here, so that arrow has no beginning.
  assert.deepEqual(arrows(SAMPLE, wakes, open, groups, view, 1000), [{ x: 200, from: vhost, to: y, ran: 500 }, { x: 100, from: undefined, to: vhost, ran: 140 }]);
  const vm = middle(shut, "a");
  assert.deepEqual(arrows(SAMPLE, wakes, shut, groups, view, 1000).map(({ from, to }) => [from, to]), [[vm, vm], [undefined, vm]]);
});

test("who ran while a vCPU waited adds up to the wait", () => {
  const found = meanwhile(SAMPLE, SAMPLE.lanes[0], 3000)!;
  assert.deepEqual([found.from, found.to, found.cpu, found.cpuLane, found.exact, found.unknown], [2000, 5000, 2, 2, false, 0]);
  // Of the sum one half lies within: 250 and 750.
  assert.deepEqual(found.runners.map(({ who, ns }) => [who, ns]), [["socat:77", 1500], ["other (several, kept as a sum)", 750], ["idle", 500], ["idle (several, kept as a sum)", 250]]);
  assert.equal(headText(SAMPLE, found), "Who ran on CPU 2 while vCPU 0 waited 3.000us for it, from 443.995735142");
  // Who does not wait, and who is not there.
  assert.deepEqual([meanwhile(SAMPLE, SAMPLE.lanes[0], 6000), meanwhile(SAMPLE, SAMPLE.lanes[1], 500), meanwhile(SAMPLE, undefined, 0)], [undefined, undefined, undefined]);
  const none = data([], { kinds: KINDS, lanes: [lane("tid-10", "vcpus", "vCPU 0", [0, 3000, 2, 0, 0, -1])] });
  assert.deepEqual([meanwhile(none, none.lanes[0], 5)?.unknown, meanwhile(none, none.lanes[0], 5)?.runners], [3000, []]);
});
