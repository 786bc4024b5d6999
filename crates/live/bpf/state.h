/* What is kept of every vCPU, and how its time is told: the rules of model's Machine, without spans. Threads that work for a VM and
 * never enter its guest are kept in the same way: they are always in user space, and events of KVM say nothing of them. */
#pragma once
#include "kernel.h"

/* Where a vCPU's thread is, whether or not it has a CPU. */
enum place { LOST, GUEST, KERNEL, USER, USER_HALTED, NO_PLACE };
/* Whether it has one. */
enum sched { RUNNING, RUNNABLE, BLOCKED };
/* What it does: the numbers of model::State. */
enum state {
    T_GUEST,
    T_KERNEL,
    T_KERNEL_BLOCKED,
    T_USER,
    T_USER_BLOCKED,
    T_POLL,
    T_HALTED,
    T_RUNNABLE,
    T_UNKNOWN,
    STATES
};

/* Buckets of durations: bucket n has those below 2^n ns that no bucket before has, the last one all others. */
#define BUCKETS 40

/* KVM polls no shorter than this before it gives a CPU away (halt_poll_ns_grow_start, virt/kvm/kvm_main.c). */
#define MIN_POLL_NS 10000

/* Of what a row is the sum. */
enum table { TABLE_EXIT, TABLE_PIO, TABLE_MMIO, TABLE_MSR, TABLE_FAST_MMIO };

struct key {
    u32 tid;
    u8 table;
    /* Of exits: 1 VMX, 2 SVM, 3 arm64, 4 any other's; of accesses whether the guest wrote. */
    u8 kind;
    u8 unused[2];
    /* The reason (of arm64: what the world switch returned, with the class of a trap above it), port, address or register. */
    u64 code;
};

struct row {
    /* Of whom and what; a tid of 0 where the row is free. */
    struct key key;
    u64 count;
    u64 total;
    u64 min;
    u64 max;
    /* Exits that the VMM handled. */
    u64 user_count;
    /* Of ports: time of the whole exits that were made for it. */
    u64 whole;
    /* Of exits: what the vCPU did in them. */
    u64 times[STATES];
    u64 buckets[BUCKETS];
};

/* Durations of one kind. */
struct durations {
    u64 count;
    u64 total;
    u64 max;
    u64 buckets[BUCKETS];
};

/* An access that is under way. */
struct begun {
    /* 0 where there is none. */
    u64 at;
    u64 code;
    u8 write;
    u8 has_key;
    u8 unused[6];
};

/* A sleep: when it began and ended, and what the vCPU had done until then. */
struct sleep {
    u64 at;
    u64 end;
    u64 busy;
    u64 idle_until;
};

struct vcpu {
    /* Counts finished changes, and `changes` those that were begun: a copy in which both differ was taken amid one. */
    u64 finished;
    u32 tid;
    u32 tgid;
    /* Its number, if an exit told; -1 otherwise. */
    s32 number;
    s32 cpu;
    /* Time of its first event, and up to when its states are told. */
    u64 first;
    u64 at;
    /* When its thread ended, or 0. */
    u64 ended;
    u64 times[STATES];
    u64 exits;
    u64 entries;
    /* Exits before the first entry, and those that no entry followed. */
    u64 before_entry;
    u64 without_entry;
    u64 polls_succeeded;
    u64 polls_succeeded_ns;
    u64 polls_failed;
    u64 polls_failed_ns;
    u64 unpolled;
    u64 unpolled_ns;
    /* Waits for a CPU, after it was woken and after it was preempted. */
    struct durations woken;
    struct durations preempted;
    /* The exit under way: since when (0: none that counts), why, and what it had done before, of the states in `touched`. */
    u64 exit_at;
    u64 exit_code;
    u64 exit_times[STATES];
    struct begun pio;
    struct begun mmio;
    struct begun msr;
    struct begun fast;
    /* The first port since the exit. */
    u64 first_port;
    /* The halt under way: since when it may be, what it had done then, and its first and its last sleep since. */
    u64 halt_at;
    u64 halt_busy;
    u64 halt_blocked;
    u64 halt_unknown;
    struct sleep first_sleep;
    struct sleep last_sleep;
    /* Up to when it was last not at work, and up to when nobody knows what it did. */
    u64 idle_until;
    u64 unknown_until;
    /* For how long KVM polls in a halt, and was set to in this one. */
    u64 poll_ns;
    u64 polled_ns;
    /* Since when it waits for a CPU; when it was woken though it was not seen to sleep, and for which CPU. */
    u64 wait_from;
    u64 early_at;
    s32 early_cpu;
    u8 exit_kind;
    u8 place;
    u8 sched;
    /* Whether its guest asked to wait in the exit under way, and whether the VMM has had it. */
    u8 waiting;
    u8 vmm;
    u8 known;
    /* Whether an exit has not been followed by an entry. */
    u8 open;
    /* Whether it waits for its CPU since it was woken. */
    u8 was_woken;
    u8 first_port_is; /* 0 none, 1 read, 2 written */
    u8 knows_poll;
    u8 knows_polled;
    /* Where it was when its last event, kvm_fpu: load, seemed to say that KVM_RUN begins; or NO_PLACE. */
    u8 loaded_from;
    /* Whether it is no vCPU, but another thread that is followed. */
    u8 other;
    u8 unused[7];
    /* States of which it got some time since the exit under way, a bit each: of those, and of no other, exit_times tells. */
    u32 touched;
    /* Its place in `vcpus`. */
    u32 slot;
    u64 changes;
};

/* Behind whom a vCPU waited. Those behind tasks that find no room are summed up in one of MANY. */
#define MANY 0xffffffff
struct blame_key {
    u32 tid;
    u32 by;
};
struct blame {
    u64 count;
    u64 ns;
    char comm[16];
};

/* vCPUs that wait for one CPU at once, of which it is kept behind whom. */
#define WAITING 8
struct cpu {
    u32 current;
    /* One more than the place of the vCPU that was found here last; it may be another one's by now. */
    u32 found;
    u32 waiting[WAITING];
};

/* What found no room, by map. */
enum dropped { DROPPED_VCPUS, DROPPED_ROWS, DROPPED_BLAMES, DROPPED_WAITING, DROPS };

/* Ways in which a guest asks to wait, at most: raw.rs has the same number. */
#define MAX_WAITING 12

/* Where the fields of records are (-1: nowhere), from the running kernel's formats; and reasons with which guests ask to wait. */
struct layout {
    s32 exit_reason;
    s32 exit_isa;
    s32 exit_ret;
    s32 exit_class;
    s32 exit_vcpu;
    s32 switch_prev_pid;
    s32 switch_prev_state;
    s32 switch_prev_state_size;
    s32 switch_prev_comm;
    s32 switch_next_pid;
    s32 wakeup_pid;
    s32 wakeup_target;
    s32 migrate_pid;
    s32 migrate_dest;
    s32 end_pid;
    /* What the world switch of arm64 returns for a trap. */
    u32 arm_trap;
    u32 waiting_count;
    u32 unused;
    u64 waiting[MAX_WAITING];
};
const volatile struct layout layout = {};

/* What events change is kept in arrays, as an element of an array is found in a tenth of the instructions that a hash takes. Places in
 * them are handed out from stacks, which user space fills, and gives back to what is forgotten. Sizes of maps are set when they are
 * loaded. */
struct {
    MAP_NUMBER(type, BPF_MAP_TYPE_ARRAY);
    MAP_NUMBER(max_entries, 1024);
    MAP_TYPE(key, u32);
    MAP_TYPE(value, struct vcpu);
} vcpus SEC(".maps");

/* A thread's place in `vcpus`. */
struct {
    MAP_NUMBER(type, BPF_MAP_TYPE_HASH);
    MAP_NUMBER(max_entries, 1024);
    MAP_TYPE(key, u32);
    MAP_TYPE(value, u32);
} slots SEC(".maps");

struct {
    MAP_NUMBER(type, BPF_MAP_TYPE_STACK);
    MAP_NUMBER(max_entries, 1024);
    MAP_TYPE(value, u32);
} free_vcpus SEC(".maps");

struct {
    MAP_NUMBER(type, BPF_MAP_TYPE_ARRAY);
    MAP_NUMBER(max_entries, 16384);
    MAP_TYPE(key, u32);
    MAP_TYPE(value, struct row);
} rows SEC(".maps");

struct {
    MAP_NUMBER(type, BPF_MAP_TYPE_STACK);
    MAP_NUMBER(max_entries, 1024);
    MAP_TYPE(value, u32);
} free_rows SEC(".maps");

/* Rows are handed out by as many at once. `free_rows` has the first of each. */
#define ROWS_AT_ONCE 16

/* A vCPU's rows, by its place: a hash table of one more than the row's place, 0 where there is none. A row is within PROBES of where its
 * key belongs. Only the vCPU's own thread changes it. */
#define INDEX 256
#define PROBES 8
struct index {
    u32 row[INDEX];
    /* Places that it has been handed out and has not used: the first, and how many. */
    u32 next;
    u32 left;
};
struct {
    MAP_NUMBER(type, BPF_MAP_TYPE_ARRAY);
    MAP_NUMBER(max_entries, 1024);
    MAP_TYPE(key, u32);
    MAP_TYPE(value, struct index);
} indexes SEC(".maps");

struct {
    MAP_NUMBER(type, BPF_MAP_TYPE_HASH);
    MAP_NUMBER(max_entries, 8192);
    MAP_TYPE(key, struct blame_key);
    MAP_TYPE(value, struct blame);
} blames SEC(".maps");

struct {
    MAP_NUMBER(type, BPF_MAP_TYPE_ARRAY);
    MAP_NUMBER(max_entries, 1024);
    MAP_TYPE(key, u32);
    MAP_TYPE(value, struct cpu);
} cpus SEC(".maps");

struct {
    MAP_NUMBER(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    MAP_NUMBER(max_entries, DROPS);
    MAP_TYPE(key, u32);
    MAP_TYPE(value, u64);
} dropped SEC(".maps");

/* What new vCPUs and rows begin as: too large for a program's stack. Nobody changes it. */
struct blank {
    struct vcpu vcpu;
    struct row row;
};
struct {
    MAP_NUMBER(type, BPF_MAP_TYPE_ARRAY);
    MAP_NUMBER(max_entries, 1);
    MAP_TYPE(key, u32);
    MAP_TYPE(value, struct blank);
} blank SEC(".maps");

INLINE void drops(u32 what)
{
    u64 *count = bpf_map_lookup_elem(&dropped, &what);
    if (count)
        *count += 1;
}

INLINE struct vcpu *find(u32 tid)
{
    u32 *slot = bpf_map_lookup_elem(&slots, &tid);
    return slot ? bpf_map_lookup_elem(&vcpus, slot) : 0;
}

/* The vCPU that the running thread is: none if it is followed as another thread, or has ended. */
INLINE struct vcpu *find_vcpu(u64 pid_tgid)
{
    u32 tid = pid_tgid, here = bpf_get_smp_processor_id();
    struct cpu *cpu = bpf_map_lookup_elem(&cpus, &here);
    struct vcpu *v = 0;
    if (cpu && cpu->found) {
        u32 slot = cpu->found - 1;
        v = bpf_map_lookup_elem(&vcpus, &slot);
    }
    if (!v || v->tid != tid) {
        v = find(tid);
        if (v && cpu)
            cpu->found = v->slot + 1;
    }
    return v && !v->ended && !v->other ? v : 0;
}

/* Not inlined where it is rare: a vCPU that was not known. */
static __attribute__((noinline)) struct vcpu *make(u64 pid_tgid, u64 now)
{
    u32 tid = pid_tgid, zero = 0, slot = 0;
    struct blank *from = bpf_map_lookup_elem(&blank, &zero);
    if (!from)
        return 0;
    u32 *had = bpf_map_lookup_elem(&slots, &tid);
    if (had) {
        /* A thread with this number ended, or was no vCPU. */
        slot = *had;
    } else if (bpf_map_pop_elem(&free_vcpus, &slot)) {
        drops(DROPPED_VCPUS);
        return 0;
    }
    bpf_map_update_elem(&vcpus, &slot, &from->vcpu, BPF_ANY);
    struct vcpu *v = bpf_map_lookup_elem(&vcpus, &slot);
    if (!v)
        return 0;
    v->tid = tid;
    v->tgid = pid_tgid >> 32;
    v->number = -1;
    v->cpu = bpf_get_smp_processor_id();
    v->first = v->at = now;
    v->loaded_from = NO_PLACE;
    v->slot = slot;
    if (!had && bpf_map_update_elem(&slots, &tid, &slot, BPF_NOEXIST))
        drops(DROPPED_VCPUS);
    struct blame_key key = {.tid = tid, .by = MANY};
    struct blame none = {};
    bpf_map_update_elem(&blames, &key, &none, BPF_NOEXIST);
    return v;
}

INLINE void begin(struct vcpu *v)
{
    v->changes += 1;
    barrier();
}

INLINE void done(struct vcpu *v)
{
    barrier();
    v->finished = v->changes;
}

INLINE u32 state_of(const struct vcpu *v)
{
    u32 place = v->place;
    if (v->sched == RUNNABLE)
        return T_RUNNABLE;
    if (place == LOST)
        return T_UNKNOWN;
    if (v->sched == RUNNING)
        return place == GUEST ? T_GUEST : place == KERNEL ? T_KERNEL : T_USER;
    if (place == KERNEL)
        return v->waiting ? T_HALTED : T_KERNEL_BLOCKED;
    if (place == USER_HALTED)
        return T_HALTED;
    /* Nothing sleeps in guest mode: the exit before was not seen. */
    return place == USER ? T_USER_BLOCKED : T_UNKNOWN;
}

/* The time of a state is about to change. */
INLINE void touch(struct vcpu *v, u32 state)
{
    u32 bit = 1u << state;
    if (!(v->touched & bit)) {
        v->touched |= bit;
        v->exit_times[state] = v->times[state];
    }
}

INLINE void tell(struct vcpu *v, u32 state, u64 now)
{
    if (now <= v->at)
        return;
    if (state >= STATES)
        state = T_UNKNOWN;
    touch(v, state);
    v->times[state] += now - v->at;
    v->at = now;
    if (state == T_UNKNOWN)
        v->unknown_until = now;
    if (state != T_KERNEL && state != T_USER)
        v->idle_until = now;
}

/* The time up to now is what the vCPU was last seen doing. */
INLINE void advance(struct vcpu *v, u64 now)
{
    tell(v, state_of(v), now);
}

/* An event was missed in the time up to now. */
INLINE void gap(struct vcpu *v, u64 now)
{
    tell(v, T_UNKNOWN, now);
}

INLINE void shift(struct vcpu *v, u32 from, u32 to, u64 ns)
{
    if (ns > v->times[from])
        ns = v->times[from];
    touch(v, from);
    touch(v, to);
    v->times[from] -= ns;
    v->times[to] += ns;
}

INLINE u64 minus(u64 a, u64 b)
{
    return a > b ? a - b : 0;
}

/* The bucket of a duration: the number of its binary digits, by halving. */
INLINE u32 bucket(u64 ns)
{
    u32 n = 0;
    if (ns >> 32) {
        n += 32;
        ns >>= 32;
    }
    if (ns >> 16) {
        n += 16;
        ns >>= 16;
    }
    if (ns >> 8) {
        n += 8;
        ns >>= 8;
    }
    if (ns >> 4) {
        n += 4;
        ns >>= 4;
    }
    if (ns >> 2) {
        n += 2;
        ns >>= 2;
    }
    n += ns >> 1 ? 2 : ns;
    return n < BUCKETS ? n : BUCKETS - 1;
}

INLINE void lasted(struct durations *d, u64 ns)
{
    d->count += 1;
    d->total += ns;
    if (ns > d->max)
        d->max = ns;
    u32 n = bucket(ns);
    if (n < BUCKETS)
        d->buckets[n] += 1;
}

INLINE u64 busy(const struct vcpu *v)
{
    return v->times[T_KERNEL] + v->times[T_USER];
}

/* From now on a halt may begin. */
INLINE void may_halt(struct vcpu *v)
{
    v->halt_at = v->at;
    v->halt_busy = busy(v);
    v->halt_blocked = v->times[T_KERNEL_BLOCKED];
    v->halt_unknown = v->times[T_UNKNOWN];
    v->first_sleep.at = 0;
    v->last_sleep.at = 0;
}
