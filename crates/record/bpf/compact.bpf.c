/* Events as records of 24 bytes, in rings that no lock guards: what perf's tracepoints cost is mostly the record that they make and
 * the way to the ring.
 *
 * Each CPU has slots, which its programs take one after the other and go on over what is old. The last word of a slot has its
 * number: who reads finds out by it which slots are whole, and how many were gone over before they were read. An event takes one
 * slot to four.
 *
 * The scheduler's events and KVM's are taken by the arguments of their tracepoints; of kvm_exit on x86 the record is read, since
 * its reason is in no argument. Times are those of bpf_ktime_get_ns, which is perf's clock too where it is asked for
 * CLOCK_MONOTONIC.
 *
 * The kernel lets programs of this licence alone read its memory; MIT is one of the project's two. */
#include "../../live/bpf/kernel.h"

char terms[] SEC("license") = "Dual MIT/GPL";

/* Of which event a slot is: the numbers of CompactKind. */
enum kind {
    MORE = 1,
    SWITCH,
    WAKING,
    WAKEUP,
    MIGRATE,
    EXIT,
    ENTRY,
    USERSPACE_EXIT,
    PIO,
    MMIO,
    MSR,
    FAST_MMIO,
    FPU,
    POLL_LENGTH,
    VCPU_WAKEUP,
    KINDS
};

/* Where fields of the running kernel's kvm_exit are on x86, from its own format; -1 where it does not have them. */
struct exit_layout {
    s32 reason;
    s32 rip;
    s32 isa;
    s32 info1;
    s32 info2;
    s32 intr_info;
    s32 error_code;
    s32 vcpu;
    s32 requests;
    /* Slots of a CPU less one: they are a power of two. */
    u32 mask;
    /* Whether what is written first is seen first. */
    u32 in_order;
    u32 unused;
};
const volatile struct exit_layout layout = {};

struct slot {
    u64 first;
    u64 second;
    /* The slot's number plus one in the low half; above it the kind, and three bytes. */
    u64 last;
};

struct {
    MAP_NUMBER(type, BPF_MAP_TYPE_ARRAY);
    MAP_NUMBER(max_entries, 1);
    MAP_NUMBER(map_flags, BPF_F_MMAPABLE);
    MAP_TYPE(key, u32);
    MAP_TYPE(value, struct slot);
} slots SEC(".maps");

/* How many slots a CPU has taken, how many events of each kind it wrote, and how many came while it paused. */
struct taken {
    u64 slots;
    u64 events[KINDS];
    u64 paused;
};

struct {
    MAP_NUMBER(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    MAP_NUMBER(max_entries, 1);
    MAP_TYPE(key, u32);
    MAP_TYPE(value, struct taken);
} taken SEC(".maps");

/* Whether events are recorded, or counted alone: while what was written is read, nothing is to go over it. */
enum state {
    OFF,
    ON,
    PAUSED
};

struct {
    MAP_NUMBER(type, BPF_MAP_TYPE_ARRAY);
    MAP_NUMBER(max_entries, 1);
    MAP_TYPE(key, u32);
    MAP_TYPE(value, u64);
} recording SEC(".maps");

INLINE u64 bytes(u32 kind, u32 a, u32 b, u32 c)
{
    return (u64)kind << 32 | (u64)(u8)a << 40 | (u64)(u8)b << 48 | (u64)(u8)c << 56;
}

/* Writes a slot, its number last. x86 writes in order; elsewhere the exchange is a full barrier. */
INLINE void put(u64 at, u64 first, u64 second, u64 last)
{
    u32 place = bpf_get_smp_processor_id() * (layout.mask + 1) + (at & layout.mask);
    struct slot *slot = bpf_map_lookup_elem(&slots, &place);
    if (!slot)
        return;
    slot->first = first;
    slot->second = second;
    last |= (u32)(at + 1);
    barrier();
    if (layout.in_order)
        *(volatile u64 *)&slot->last = last;
    else
        __sync_lock_test_and_set(&slot->last, last);
}

/* Takes slots for an event. Returns the number of the first, or -1 where nothing is recorded. */
INLINE s64 take(u32 kind, u32 count)
{
    u32 zero = 0;
    u64 *on = bpf_map_lookup_elem(&recording, &zero);
    struct taken *own = bpf_map_lookup_elem(&taken, &zero);
    if (!on || *on == OFF || !own)
        return -1;
    if (*on == PAUSED) {
        own->paused += 1;
        return -1;
    }
    own->events[kind] += 1;
    /* Interrupts take slots too. */
    return __sync_fetch_and_add(&own->slots, count);
}

/* An event with 32 bits more than who made it. */
INLINE s64 event(u32 kind, u32 count, u32 value, u32 a, u32 b, u32 c)
{
    u64 now = bpf_ktime_get_ns();
    s64 at = take(kind, count);
    if (at < 0)
        return at;
    u32 tid = bpf_get_current_pid_tgid();
    put(at, now, (u64)value << 32 | tid, bytes(kind, a, b, c));
    return at;
}

INLINE void more(s64 at, u64 first, u64 second)
{
    put(at, first, second, bytes(MORE, 0, 0, 0));
}

/* Of include/linux/sched.h: what a task's state is reported as (__task_state_index), as the number of its bit plus one. */
INLINE u32 reported(u32 state, u32 exit_state)
{
    u32 all = (state | exit_state) & 0x7f;
    if ((state & 0x402) == 0x402)
        all = 0x80;
    if (state & (0x1000 | 0x8000))
        all = 2;
    u32 bits = 0;
#pragma unroll
    for (u32 i = 0; i < 8; i++)
        if (all & 1u << i)
            bits = i + 1;
    return bits;
}

struct switch_args {
    u64 preempt;
    struct task_struct *prev;
    struct task_struct *next;
};

/* A task that had this state leaves. */
INLINE void switches(struct switch_args *args, u32 state)
{
    struct task_struct *prev = args->prev, *next = args->next;
    /* TASK_REPORT_MAX is its bit 8. */
    u32 bits = (u8)args->preempt ? 9 : reported(state, prev->exit_state);
    event(SWITCH, 1, next->pid, bits, prev->prio, next->prio);
}

SEC("tp_btf/sched_switch")
int sched_switch(struct switch_args *args)
{
    switches(args, args->prev->__state);
    return 0;
}

/* Since 5.19 the tracepoint is given the state that the task had when it left: who wakes it may have changed it since. A kernel that
 * does not give it refuses this program. */
struct state_args {
    struct switch_args first;
    u64 state;
};

SEC("tp_btf/sched_switch")
int sched_switch_with_state(struct state_args *args)
{
    switches(&args->first, args->state);
    return 0;
}

struct task_args {
    struct task_struct *task;
    u64 number;
};

INLINE u32 cpu_of(struct task_struct *task)
{
    if (HAS_FIELD(task->thread_info.cpu))
        return task->thread_info.cpu;
    return task->wake_cpu;
}

INLINE void wakes(u32 kind, struct task_struct *task)
{
    u32 cpu = cpu_of(task);
    event(kind, 1, task->pid, task->prio, cpu, cpu >> 8);
}

SEC("tp_btf/sched_waking")
int sched_waking(struct task_args *args)
{
    wakes(WAKING, args->task);
    return 0;
}

SEC("tp_btf/sched_wakeup")
int sched_wakeup(struct task_args *args)
{
    wakes(WAKEUP, args->task);
    return 0;
}

SEC("tp_btf/sched_migrate_task")
int sched_migrate_task(struct task_args *args)
{
    struct task_struct *task = args->task;
    s64 at = event(MIGRATE, 2, task->pid, task->prio, 0, 0);
    if (at >= 0)
        more(at + 1, cpu_of(task), args->number);
    return 0;
}

INLINE u64 field64(const void *record, s32 at)
{
    u64 value = 0;
    if (at >= 0)
        bpf_probe_read_kernel(&value, sizeof(value), record + at);
    return value;
}

SEC("tracepoint/kvm/kvm_exit")
int kvm_exit(void *record)
{
    u32 number = field32(record, layout.vcpu), isa = layout.isa >= 0 ? field32(record, layout.isa) : 1;
    s64 at = event(EXIT, 4, field32(record, layout.reason), isa, number, number >> 8);
    if (at < 0)
        return PASS_ON;
    more(at + 1, field64(record, layout.rip), field64(record, layout.info1));
    u64 low = layout.intr_info >= 0 ? field32(record, layout.intr_info) : 0;
    u64 high = layout.error_code >= 0 ? field32(record, layout.error_code) : 0;
    more(at + 2, field64(record, layout.info2), high << 32 | low);
    more(at + 3, field64(record, layout.requests), 0);
    return PASS_ON;
}

SEC("raw_tp/kvm_exit")
int kvm_exit_by_argument(struct args *args)
{
    s64 at = event(EXIT, 2, args->arg[0], 0, 0, 0);
    if (at >= 0)
        more(at + 1, args->arg[1], args->arg[2]);
    return 0;
}

SEC("raw_tp/kvm_entry")
int kvm_entry(void *unused)
{
    event(ENTRY, 1, 0, 0, 0, 0);
    return 0;
}

SEC("raw_tp/kvm_userspace_exit")
int kvm_userspace_exit(struct args *args)
{
    s64 at = event(USERSPACE_EXIT, 2, args->arg[0], 0, 0, 0);
    if (at >= 0)
        more(at + 1, args->arg[1], 0);
    return 0;
}

SEC("raw_tp/kvm_pio")
int kvm_pio(struct args *args)
{
    u32 size = args->arg[2];
    s64 at = event(PIO, 2, args->arg[1], args->arg[0], size, 0);
    if (at < 0)
        return 0;
    u32 value = 0;
    const void *from = (void *)args->arg[4];
    if (size == 1)
        bpf_probe_read_kernel(&value, 1, from);
    else if (size == 2)
        bpf_probe_read_kernel(&value, 2, from);
    else
        bpf_probe_read_kernel(&value, 4, from);
    more(at + 1, args->arg[3], value);
    return 0;
}

SEC("raw_tp/kvm_mmio")
int kvm_mmio(struct args *args)
{
    u32 length = args->arg[1];
    s64 at = event(MMIO, 2, length, args->arg[0], 0, 0);
    if (at < 0)
        return 0;
    u64 value = 0;
    const void *from = (void *)args->arg[3];
    if (from && length >= 8)
        bpf_probe_read_kernel(&value, 8, from);
    else if (from && length == 4)
        bpf_probe_read_kernel(&value, 4, from);
    else if (from && length == 2)
        bpf_probe_read_kernel(&value, 2, from);
    else if (from)
        bpf_probe_read_kernel(&value, 1, from);
    more(at + 1, args->arg[2], value);
    return 0;
}

SEC("raw_tp/kvm_msr")
int kvm_msr(struct args *args)
{
    s64 at = event(MSR, 2, args->arg[1], args->arg[0], args->arg[3], 0);
    if (at >= 0)
        more(at + 1, args->arg[2], 0);
    return 0;
}

SEC("raw_tp/kvm_fast_mmio")
int kvm_fast_mmio(struct args *args)
{
    s64 at = event(FAST_MMIO, 2, 0, 0, 0, 0);
    if (at >= 0)
        more(at + 1, args->arg[0], 0);
    return 0;
}

SEC("raw_tp/kvm_fpu")
int kvm_fpu(struct args *args)
{
    event(FPU, 1, args->arg[0], 0, 0, 0);
    return 0;
}

SEC("raw_tp/kvm_halt_poll_ns")
int kvm_halt_poll_ns(struct args *args)
{
    s64 at = event(POLL_LENGTH, 2, args->arg[1], args->arg[0], 0, 0);
    if (at >= 0)
        more(at + 1, (u32)args->arg[2], (u32)args->arg[3]);
    return 0;
}

SEC("raw_tp/kvm_vcpu_wakeup")
int kvm_vcpu_wakeup(struct args *args)
{
    s64 at = event(VCPU_WAKEUP, 2, 0, args->arg[1], args->arg[2], 0);
    if (at >= 0)
        more(at + 1, args->arg[0], 0);
    return 0;
}
