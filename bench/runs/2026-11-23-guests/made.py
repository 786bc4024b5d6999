#!/usr/bin/env python3
"""Writes host.txt and guest.txt: a vCPU that enters its guest ROUNDS times, of which each takes two switches. The guest's clock is a day behind.

    made.py ROUNDS
"""
import sys

ROUNDS = int(sys.argv[1])
DAY_US = 86_400_000_000


def seconds(us):
    return f"{us // 1_000_000}.{us % 1_000_000:06d}"


def switch(us, before, behind):
    (name, tid), (next_name, next_tid) = before, behind
    return (f"   {name}-{tid}   [000] {seconds(us)}: sched_switch: prev_comm={name} prev_pid={tid} prev_prio=120 prev_state=S ==> "
            f"next_comm={next_name} next_pid={next_tid} next_prio=120\n")


idle, server = ("swapper/0", 0), ("server", 77)
state, at = 1, 100_000_000_000
with open("host.txt", "w") as host, open("guest.txt", "w") as guest:
    host.write("cpus=4\n")
    guest.write("cpus=1\n")
    for _ in range(ROUNDS):
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        at += 30 + (state >> 33) % 90
        exit_us = at + 60 + (state >> 40) % 200
        head = "   CPU 0/KVM-101   [001] "
        host.write(f"{head}{seconds(at)}: kvm_entry: vcpu 0, rip 0x1000\n")
        host.write(f"{head}{seconds(exit_us)}: kvm_exit: reason HLT rip 0x1000 info 0 0\n")
        guest.write(switch(at - DAY_US + 20, idle, server))
        guest.write(switch(at - DAY_US + 50, server, idle))
        at = exit_us
