import assert from "node:assert/strict";
import { test } from "node:test";
import { command, place, quoted } from "../src/explain.js";
import { data } from "./support.js";

const row = (values: Record<string, string>): ReadonlyMap<string, string> => new Map(Object.entries(values));

test("numbers lead to the command that prints their events", () => {
  const begin = "trapline explain perf.data exits";
  const exit = row({ key: "0x608:PIN", count: "7", mean_ns: "12", share: "0.5", p50_ns: "" });
  assert.equal(command(begin, "exits", exit, "count"), `${begin} 0x608:PIN count`);
  assert.equal(command(begin, "exits", exit, "mean_ns"), `${begin} 0x608:PIN mean`);
  // What has no events, and what the row does not have.
  assert.equal(command(begin, "exits", exit, "share"), undefined);
  assert.equal(command(begin, "exits", exit, "p50_ns"), undefined);
  const vcpu = row({ vcpu: "1", vm_pid: "1691", tid: "1700", runnable_ns: "5", others: "" });
  const vcpus = "trapline explain perf.data vcpus";
  assert.equal(command(vcpus, "vcpus", vcpu, "runnable_ns"), `${vcpus} 1 runnable --vm=1691`);
  assert.equal(command("trapline explain --vm=web x vcpus", "vcpus", vcpu, "runnable_ns"), "trapline explain --vm=web x vcpus 1 runnable");
  assert.equal(command(vcpus, "vcpus", row({ vcpu: "", runnable_ns: "5" }), "runnable_ns"), undefined);
  const task = row({ comm: "sh", pid: "4711", delay_max_ns: "9" });
  assert.equal(command("trapline explain x sched", "sched", task, "delay_max_ns"), "trapline explain x sched 4711 max");
  const paths = "trapline explain x paths irqfd";
  assert.equal(command(paths, "paths", row({ stage: "total", p99_ns: "3" }), "p99_ns"), `${paths} p99`);
  assert.equal(command(paths, "paths", row({ stage: "woken", p99_ns: "3" }), "p99_ns"), undefined);
  const irq = row({ vm_pid: "1691", vcpu: "1", vector: "236", injected: "7" });
  assert.equal(command("trapline explain x irqs", "irqs", irq, "injected"), "trapline explain x irqs 236 injected --vm=1691 --vcpu=1");
  assert.equal(quoted("a b'c"), "'a b'\\''c'");
});

test("numbers lead to a moment on the timeline", () => {
  const piece = (begin: number, end: number, kind: number): { begin: number; end: number; kind: number; count: number } => ({ begin, end, kind, count: 1 });
  const made = data([[piece(0, 10, 0), piece(10, 40, 1), piece(40, 60, 0)]]);
  const found = place(made, "vcpus", row({ tid: "0" }), "guest_ns");
  assert.deepEqual([found?.lane, found?.from, found?.to], [0, 40, 60]);
  assert.equal(place(made, "vcpus", row({ tid: "0" }), "user_ns"), undefined);
  assert.equal(place(made, "vcpus", row({ tid: "9" }), "guest_ns"), undefined);
  const at = made.begin + 50n;
  const delay = place(made, "sched", row({ pid: "0", comm: "sh", delay_max_ns: "20", delay_max_at_ns: String(at) }), "delay_max_ns");
  assert.deepEqual([delay?.lane, delay?.from, delay?.to], [0, 30, 50]);
  assert.equal(place(made, "sched", row({ pid: "0", delay_max_ns: "20" }), "delay_max_ns"), undefined);
});
