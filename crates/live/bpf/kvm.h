/* What KVM tells of a vCPU: exits, entries, accesses, halts. Exits are timed as analysis::Exits does. */
#pragma once
#include "sched.h"

/* A row that its vCPU does not have yet. */
static __attribute__((noinline)) struct row *new_row(const struct key *key, struct index *index, u32 *place)
{
    u32 zero = 0, slot = 0;
    struct blank *from = bpf_map_lookup_elem(&blank, &zero);
    if (!from || !key || !index || !place)
        return 0;
    if (!index->left) {
        if (bpf_map_pop_elem(&free_rows, &slot)) {
            drops(DROPPED_ROWS);
            return 0;
        }
        index->next = slot;
        index->left = ROWS_AT_ONCE;
    }
    slot = index->next;
    index->next += 1;
    index->left -= 1;
    bpf_map_update_elem(&rows, &slot, &from->row, BPF_ANY);
    struct row *row = bpf_map_lookup_elem(&rows, &slot);
    if (!row)
        return 0;
    row->key = *key;
    *place = slot + 1;
    return row;
}

static __attribute__((noinline)) struct row *row_of(struct vcpu *v, u32 table, u32 kind, u64 code)
{
    if (!v)
        return 0;
    u32 slot = v->slot;
    struct index *index = bpf_map_lookup_elem(&indexes, &slot);
    if (!index)
        return 0;
    /* The top bits of a product with 2^64 divided by the golden ratio are spread evenly (Knuth, volume 3, 6.4). */
    u64 hash = (code ^ (u64)table << 40 ^ (u64)kind << 48) * 0x9e3779b97f4a7c15ull;
    u32 at = hash >> 56;
#pragma unroll
    for (int i = 0; i < PROBES; i++) {
        u32 *place = &index->row[(at + i) % INDEX];
        if (!*place) {
            struct key key = {.tid = v->tid, .table = table, .kind = kind, .code = code};
            return new_row(&key, index, place);
        }
        u32 number = *place - 1;
        struct row *row = bpf_map_lookup_elem(&rows, &number);
        if (row && row->key.code == code && row->key.table == table && row->key.kind == kind)
            return row;
    }
    drops(DROPPED_ROWS);
    return 0;
}

INLINE void add(struct row *row, u64 ns, u32 vmm)
{
    if (!row->count || ns < row->min)
        row->min = ns;
    row->count += 1;
    row->total += ns;
    if (ns > row->max)
        row->max = ns;
    row->user_count += vmm;
    u32 n = bucket(ns);
    if (n < BUCKETS)
        row->buckets[n] += 1;
}

/* An access that has begun is over, in an exit that was made for it and took `whole` ns, or 0. */
static __attribute__((noinline)) int access_ends(struct vcpu *v, struct begun *begun, u32 table, u64 now, u64 whole)
{
    if (!v || !begun)
        return 0;
    struct row *row = row_of(v, table, begun->write, begun->code);
    if (row) {
        add(row, minus(now, begun->at), v->vmm);
        row->whole += whole;
    }
    begun->at = 0;
    return 0;
}

INLINE int is_waiting(u32 kind, u64 code)
{
    code |= (u64)kind << 56;
    int waits = 0;
#pragma unroll
    for (int i = 0; i < MAX_WAITING; i++)
        waits |= i < layout.waiting_count && layout.waiting[i] == code;
    return waits;
}

/* A vCPU leaves its guest. */
INLINE void on_exit(u32 kind, u64 code, s32 number)
{
    u64 now = bpf_ktime_get_ns(), id = bpf_get_current_pid_tgid();
    struct vcpu *v = find_vcpu(id);
    if (!v)
        v = make(id, now);
    if (!v)
        return;
    begin(v);
    runs(v, now);
    /* If an entry was missed, some of this time is the guest's. */
    if (v->place == GUEST)
        advance(v, now);
    else
        gap(v, now);
    v->place = KERNEL;
    v->number = number;
    v->exits += 1;
    v->vmm = 0;
    v->waiting = is_waiting(kind, code);
    may_halt(v);
    /* As perf has it, on x86 exits count from the first entry on. */
    if (!v->known && kind <= 2) {
        v->before_entry += 1;
        done(v);
        return;
    }
    v->known = 1;
    v->first_port_is = 0;
    if (v->open)
        v->without_entry += 1;
    v->open = 1;
    v->exit_at = now;
    v->exit_kind = kind;
    v->exit_code = code;
    v->touched = 0;
    v->mmio.at = now;
    v->mmio.has_key = 0;
    done(v);
}

/* A vCPU enters its guest. */
INLINE void on_entry(void)
{
    u64 now = bpf_ktime_get_ns(), id = bpf_get_current_pid_tgid();
    struct vcpu *v = find_vcpu(id);
    if (!v)
        v = make(id, now);
    if (!v)
        return;
    begin(v);
    runs(v, now);
    if (v->place != GUEST)
        advance(v, now);
    else
        gap(v, now);
    v->place = GUEST;
    v->waiting = 0;
    v->known = 1;
    v->entries += 1;
    u64 whole = v->first_port_is && v->open ? minus(now, v->exit_at) : 0;
    u32 write = v->first_port_is - 1;
    if (whole && (!v->pio.at || v->pio.code != v->first_port || v->pio.write != write)) {
        struct row *row = row_of(v, TABLE_PIO, write, v->first_port);
        if (row)
            row->whole += whole;
        whole = 0;
    }
    v->first_port_is = 0;
    if (v->pio.at)
        access_ends(v, &v->pio, TABLE_PIO, now, whole);
    if (v->mmio.at && v->mmio.has_key)
        access_ends(v, &v->mmio, TABLE_MMIO, now, 0);
    if (v->msr.at)
        access_ends(v, &v->msr, TABLE_MSR, now, 0);
    if (v->fast.at)
        access_ends(v, &v->fast, TABLE_FAST_MMIO, now, 0);
    if (v->exit_at) {
        struct row *row = row_of(v, TABLE_EXIT, v->exit_kind, v->exit_code);
        if (row) {
            add(row, minus(now, v->exit_at), v->vmm);
#pragma unroll
            for (int i = 0; i < STATES; i++) {
                if (v->touched & 1u << i)
                    row->times[i] += minus(v->times[i], v->exit_times[i]);
            }
        }
        v->exit_at = 0;
    }
    v->open = 0;
    done(v);
}

/* An event inside KVM_RUN: the vCPU is out of its guest, whether its exit was seen or not. */
INLINE struct vcpu *in_kvm(u64 now)
{
    struct vcpu *v = find_vcpu(bpf_get_current_pid_tgid());
    if (!v)
        return 0;
    begin(v);
    runs(v, now);
    if (v->place == GUEST) {
        gap(v, now);
        v->waiting = 0;
        v->place = KERNEL;
        may_halt(v);
    } else {
        advance(v, now);
    }
    return v;
}

INLINE void on_userspace_exit(u32 reason)
{
    struct vcpu *v = in_kvm(bpf_ktime_get_ns());
    if (!v)
        return;
    v->place = reason == 5 /* KVM_EXIT_HLT */ ? USER_HALTED : USER;
    v->vmm = 1;
    done(v);
}

INLINE void on_fpu(int load)
{
    u64 now = bpf_ktime_get_ns();
    if (load) {
        struct vcpu *v = in_kvm(now);
        if (!v)
            return;
        v->loaded_from = v->place;
        v->place = KERNEL;
        done(v);
        return;
    }
    struct vcpu *v = find_vcpu(bpf_get_current_pid_tgid());
    if (!v || v->sched != RUNNING)
        return;
    begin(v);
    if (v->loaded_from != NO_PLACE) {
        /* Right behind a load it is another request's than KVM_RUN's, and the VMM goes on. */
        advance(v, now);
        v->place = v->loaded_from;
        v->loaded_from = NO_PLACE;
    } else if (v->place == GUEST) {
        gap(v, now);
        v->place = KERNEL;
    }
    done(v);
}

INLINE void access_begins(struct begun *begun, u64 code, u32 write, u64 now)
{
    begun->at = now;
    begun->code = code;
    begun->write = write;
    begun->has_key = 1;
}

INLINE void on_port(u32 write, u32 port)
{
    u64 now = bpf_ktime_get_ns();
    struct vcpu *v = in_kvm(now);
    if (!v)
        return;
    v->place = KERNEL;
    if (v->known) {
        access_begins(&v->pio, port, !!write, now);
        if (!v->first_port_is) {
            v->first_port = port;
            v->first_port_is = write ? 2 : 1;
        }
    }
    done(v);
}

INLINE void on_register(u32 write, u32 number)
{
    u64 now = bpf_ktime_get_ns();
    struct vcpu *v = in_kvm(now);
    if (!v)
        return;
    v->place = KERNEL;
    if (v->known)
        access_begins(&v->msr, number, !!write, now);
    done(v);
}

/* `type` is KVM_TRACE_MMIO_*: 0 a read that the VMM is to answer, 1 one with its value, 2 a write. */
INLINE void on_mmio(u32 type, u64 gpa)
{
    u64 now = bpf_ktime_get_ns();
    struct vcpu *v = in_kvm(now);
    if (!v)
        return;
    v->place = KERNEL;
    if (v->known && type == 2)
        access_begins(&v->mmio, gpa, 1, now);
    if (v->known && type == 1 && v->mmio.at) {
        /* A read ends what the exit began. */
        if (!v->mmio.has_key) {
            v->mmio.code = gpa;
            v->mmio.write = 0;
        }
        access_ends(v, &v->mmio, TABLE_MMIO, now, 0);
    }
    done(v);
}

/* A write to an address whose meaning the address alone is (KVM_IOEVENTFD with length 0): a notification of virtio. */
INLINE void on_fast_mmio(u64 gpa)
{
    u64 now = bpf_ktime_get_ns();
    struct vcpu *v = find_vcpu(bpf_get_current_pid_tgid());
    if (!v || !v->known)
        return;
    access_begins(&v->fast, gpa, 1, now);
}

INLINE void on_poll_length(u32 new_ns, u32 old_ns)
{
    struct vcpu *v = in_kvm(bpf_ktime_get_ns());
    if (!v)
        return;
    v->polled_ns = old_ns;
    v->poll_ns = new_ns;
    v->knows_poll = v->knows_polled = 1;
    done(v);
}

/* A vCPU was halted for `halted` ns, polling included, and slept if `waited`. */
INLINE void on_halted(u64 halted, u32 waited)
{
    u64 now = bpf_ktime_get_ns();
    struct vcpu *v = in_kvm(now);
    if (!v)
        return;
    u64 from = minus(now, halted), slept = 0, until = now, idle_until = v->idle_until, worked = busy(v);
    const struct sleep *sleep = &v->first_sleep;
    if (sleep->at && sleep->end < from)
        /* That was before the halt. */
        sleep = &v->last_sleep;
    if (sleep->at && sleep->end >= from) {
        slept = until = sleep->at > from ? sleep->at : from;
        idle_until = sleep->idle_until;
        worked = sleep->busy;
    }
    worked = minus(worked, v->halt_busy);
    /* On a CPU from the halt's beginning until it slept: what lies between, less what of that was no work. */
    u64 idle = minus(minus(until, v->halt_at), worked), idle_within = minus(idle_until, from);
    u64 on_cpu = minus(minus(until, from), idle < idle_within ? idle : idle_within);
    u32 said = v->knows_polled, is_long = on_cpu >= MIN_POLL_NS, polled;
    u64 set = said ? v->polled_ns : v->poll_ns;
    if (v->knows_poll)
        polled = set > 0 && (is_long || !waited || said);
    else
        /* Without kvm_halt_poll_ns nothing was polled in vain; and a vCPU that does not poll halted at once. */
        polled = waited ? 0 : halted >= MIN_POLL_NS || v->unpolled == 0;
    if (polled && waited)
        polled = slept || !v->knows_poll || on_cpu / 4 <= (set > MIN_POLL_NS ? set : MIN_POLL_NS);
    v->knows_polled = 0;
    shift(v, T_KERNEL_BLOCKED, T_HALTED, minus(v->times[T_KERNEL_BLOCKED], v->halt_blocked));
    if (waited) {
        u64 unknown = minus(v->times[T_UNKNOWN], v->halt_unknown), within = minus(v->unknown_until, from);
        shift(v, T_UNKNOWN, T_HALTED, unknown < within ? unknown : within);
    }
    if (polled)
        shift(v, T_KERNEL, T_POLL, on_cpu);
    if (polled && !waited) {
        v->polls_succeeded += 1;
        v->polls_succeeded_ns += on_cpu;
    } else if (polled) {
        v->polls_failed += 1;
        v->polls_failed_ns += on_cpu;
    } else if (waited) {
        v->unpolled += 1;
        v->unpolled_ns += on_cpu;
    }
    v->place = KERNEL;
    may_halt(v);
    done(v);
}
