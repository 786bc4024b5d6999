/* Who has which CPU, who waits for one, and behind whom. The kernel holds the lock of a CPU's run queue at sched_switch and
 * sched_wakeup, so nobody else changes what is kept of that CPU and of the vCPUs on its queue. */
#pragma once
#include "state.h"

INLINE struct cpu *cpu_of(s32 number)
{
    u32 key = number;
    return bpf_map_lookup_elem(&cpus, &key);
}

INLINE void enter_queue(struct vcpu *v, s32 number)
{
    v->cpu = number;
    struct cpu *cpu = cpu_of(number);
    if (!cpu)
        return;
#pragma unroll
    for (int i = 0; i < WAITING; i++) {
        if (!cpu->waiting[i]) {
            cpu->waiting[i] = v->tid;
            return;
        }
    }
    drops(DROPPED_WAITING);
}

INLINE void leave_queue(struct vcpu *v)
{
    struct cpu *cpu = cpu_of(v->cpu);
    if (!cpu)
        return;
#pragma unroll
    for (int i = 0; i < WAITING; i++) {
        if (cpu->waiting[i] == v->tid)
            cpu->waiting[i] = 0;
    }
}

/* A vCPU waited up to now while a task ran. `comm` is that task's name, if it is at hand. */
INLINE void behind(struct vcpu *v, u32 by, const void *comm, u64 now)
{
    if (now <= v->at)
        return;
    u64 ns = now - v->at;
    tell(v, T_RUNNABLE, now);
    struct blame_key key = {.tid = v->tid, .by = by};
    struct blame *blame = bpf_map_lookup_elem(&blames, &key);
    if (!blame) {
        struct blame first = {};
        if (bpf_map_update_elem(&blames, &key, &first, BPF_NOEXIST)) {
            key.by = MANY;
            comm = 0;
        }
        blame = bpf_map_lookup_elem(&blames, &key);
        if (!blame) {
            drops(DROPPED_BLAMES);
            return;
        }
    }
    if (comm && !blame->comm[0])
        bpf_probe_read_kernel(blame->comm, sizeof(blame->comm), comm);
    blame->count += 1;
    blame->ns += ns;
}

INLINE void wait_ends(struct vcpu *v, u64 now)
{
    u64 ns = minus(now, v->wait_from);
    lasted(v->was_woken ? &v->woken : &v->preempted, ns);
}

/* The thread makes an event, so it runs, on this CPU. */
INLINE void runs(struct vcpu *v, u64 now)
{
    s32 here = bpf_get_smp_processor_id();
    v->early_at = 0;
    v->loaded_from = NO_PLACE;
    if (v->sched != RUNNING) {
        gap(v, now);
        leave_queue(v);
        v->sched = RUNNING;
    }
    if (v->cpu != here) {
        /* It changed its CPU without having been seen to leave the other one. */
        gap(v, now);
        v->cpu = here;
    }
}

/* It sleeps no more. */
INLINE void awake(struct vcpu *v, u64 now)
{
    advance(v, now);
    v->last_sleep.end = now;
    if (v->first_sleep.at == v->last_sleep.at)
        v->first_sleep.end = now;
}

INLINE void switched_out(struct vcpu *v, int runnable, u64 now)
{
    begin(v);
    runs(v, now);
    if (v->place == GUEST) {
        /* A thread leaves its CPU from the kernel: the exit before was not seen. */
        gap(v, now);
        v->place = LOST;
    } else {
        advance(v, now);
    }
    if (runnable) {
        v->sched = RUNNABLE;
        v->was_woken = 0;
        v->wait_from = now;
        enter_queue(v, bpf_get_smp_processor_id());
    } else {
        v->sched = BLOCKED;
        v->last_sleep.at = now;
        v->last_sleep.end = 0;
        v->last_sleep.busy = busy(v);
        v->last_sleep.idle_until = v->idle_until;
        if (!v->first_sleep.at)
            v->first_sleep = v->last_sleep;
    }
    done(v);
}

INLINE void switched_in(struct vcpu *v, u32 prev, const void *comm, u64 now)
{
    s32 here = bpf_get_smp_processor_id();
    begin(v);
    if (v->sched == RUNNABLE) {
        behind(v, prev, comm, now);
        wait_ends(v, now);
        leave_queue(v);
    } else if (v->sched == BLOCKED) {
        awake(v, now);
    } else {
        /* It was not seen to leave. */
        u64 early = v->early_at;
        if (early) {
            gap(v, early);
            if (v->early_cpu == here)
                behind(v, prev, comm, now);
            else
                tell(v, T_RUNNABLE, now);
            v->was_woken = 1;
            v->wait_from = early;
            wait_ends(v, now);
        } else {
            gap(v, now);
        }
        v->early_at = 0;
        if (v->place == GUEST)
            v->place = LOST;
    }
    v->sched = RUNNING;
    v->cpu = here;
    done(v);
}

/* A task gives a CPU to another one. */
INLINE void on_switch(u32 prev, const void *comm, int runnable, u32 next)
{
    struct cpu *cpu = cpu_of(bpf_get_smp_processor_id());
    struct vcpu *out = find(prev), *in = find(next);
    u64 now = 0;
    if (cpu) {
        const u64 *waiting = (const u64 *)cpu->waiting;
        cpu->current = next;
        if (waiting[0] | waiting[1] | waiting[2] | waiting[3]) {
            now = bpf_ktime_get_ns();
#pragma unroll
            for (int i = 0; i < WAITING; i++) {
                u32 tid = cpu->waiting[i];
                struct vcpu *v = tid && tid != prev ? find(tid) : 0;
                if (v) {
                    begin(v);
                    behind(v, prev, comm, now);
                    done(v);
                }
            }
        }
    }
    if (out && !out->ended) {
        if (!now)
            now = bpf_ktime_get_ns();
        switched_out(out, runnable, now);
    }
    if (in && !in->ended) {
        if (!now)
            now = bpf_ktime_get_ns();
        switched_in(in, prev, comm, now);
    }
}

/* A thread that slept is on a run queue. */
INLINE void on_wakeup(u32 tid, s32 target)
{
    struct vcpu *v = find(tid);
    if (!v || v->ended)
        return;
    u64 now = bpf_ktime_get_ns();
    if (v->sched != BLOCKED) {
        /* One that is about to sleep may be woken before it does: it then keeps its CPU. */
        if (v->sched == RUNNING) {
            v->early_at = now;
            v->early_cpu = target;
        }
        return;
    }
    begin(v);
    awake(v, now);
    v->sched = RUNNABLE;
    v->was_woken = 1;
    v->wait_from = now;
    enter_queue(v, target);
    done(v);
}

INLINE void on_migrate(u32 tid, s32 target)
{
    struct vcpu *v = find(tid);
    /* One that sleeps has an event again when it is woken. */
    if (!v || v->ended || v->sched != RUNNABLE)
        return;
    u64 now = bpf_ktime_get_ns();
    begin(v);
    struct cpu *cpu = cpu_of(v->cpu);
    if (cpu)
        behind(v, cpu->current, 0, now);
    leave_queue(v);
    enter_queue(v, target);
    done(v);
}

/* A thread ends, which it tells itself. */
INLINE void on_end(u32 tid)
{
    struct vcpu *v = find(tid);
    if (!v || v->ended)
        return;
    u64 now = bpf_ktime_get_ns();
    begin(v);
    if (v->sched == RUNNING)
        advance(v, now);
    else
        gap(v, now);
    leave_queue(v);
    v->sched = RUNNING;
    v->place = LOST;
    v->ended = now;
    done(v);
}
