/* Pairs of events: of the first one, each thread's last record is kept, and written when the second one comes.
 *
 * Both events are perf's own (tracepoints, or probes made in tracefs), to which a program each is attached
 * (PERF_EVENT_IOC_SET_BPF). What is kept goes to a ring of perf's as the record of an event of type
 * PERF_COUNT_SW_BPF_OUTPUT: with the thread and the time of the second event. Behind it stands how much earlier the first one was,
 * and on which CPU, so that who reads the ring can say when that was on perf's clock, which no program can read.
 *
 * The kernel lets programs of this licence alone read its memory; MIT is one of the project's two. */
#include "../../live/bpf/kernel.h"

char terms[] SEC("license") = "Dual MIT/GPL";

/* Bytes of the longest record that is kept. */
#define RECORD 240

/* What a record is made of. */
enum { FROM_TRACEPOINT, FROM_PROBE, FROM_KERNEL_PROBE, FROM_RETURN };

/* An event of the pair. */
struct shape {
    /* Bytes of its record; 0 where perf writes it. */
    u32 size;
    /* The number of its kind, which every record begins with. */
    u32 id;
    u32 from;
    /* Where the instruction pointer stands in struct pt_regs. */
    u32 ip_at;
};

struct pair {
    struct shape first;
    struct shape second;
    /* Of pairs that are shorter nothing is written, ns. */
    u64 least;
};
const volatile struct pair pair = {};

/* What a record begins with (struct trace_entry, include/linux/trace_events.h). */
struct head {
    unsigned short id;
    u8 flags;
    u8 preempt_count;
    u32 tid;
};

/* What stands behind a record. */
struct trailer {
    /* How much earlier than the time of its sample it was, ns. */
    u64 before;
    u32 cpu;
    u32 unused;
};

/* The last record of a thread. */
struct kept {
    u64 at;
    /* The window in which it was made. */
    u64 window;
    u32 cpu;
    /* Whether it has been written. */
    u32 written;
    u8 record[RECORD + sizeof(struct trailer)];
};

struct {
    MAP_NUMBER(type, BPF_MAP_TYPE_LRU_HASH);
    MAP_NUMBER(max_entries, 16384);
    MAP_TYPE(key, u32);
    MAP_TYPE(value, struct kept);
} last SEC(".maps");

/* Where a record is put together. */
struct {
    MAP_NUMBER(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    MAP_NUMBER(max_entries, 1);
    MAP_TYPE(key, u32);
    MAP_TYPE(value, struct kept);
} blank SEC(".maps");

/* The number of the window in which the first event is looked at: odd in one, even between two; 0 where nothing is recorded. */
struct {
    MAP_NUMBER(type, BPF_MAP_TYPE_ARRAY);
    MAP_NUMBER(max_entries, 1);
    MAP_TYPE(key, u32);
    MAP_TYPE(value, u64);
} window SEC(".maps");

struct {
    MAP_NUMBER(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
    MAP_NUMBER(max_entries, 1);
    MAP_TYPE(key, u32);
    MAP_TYPE(value, u32);
} firsts SEC(".maps");

struct {
    MAP_NUMBER(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
    MAP_NUMBER(max_entries, 1);
    MAP_TYPE(key, u32);
    MAP_TYPE(value, u32);
} seconds SEC(".maps");

/* What was counted: the numbers of PairCount. */
enum { FIRST, SECOND, WRITTEN_FIRST, WRITTEN_SECOND, UNSEEN, SHORT, COUNTS };

struct {
    MAP_NUMBER(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    MAP_NUMBER(max_entries, COUNTS);
    MAP_TYPE(key, u32);
    MAP_TYPE(value, u64);
} counts SEC(".maps");

INLINE void one_more(u32 what)
{
    u64 *count = bpf_map_lookup_elem(&counts, &what);
    if (count)
        *count += 1;
}

/* The idle tasks of all CPUs have the number 0. */
INLINE u32 thread(void)
{
    u32 tid = bpf_get_current_pid_tgid();
    return tid ? tid : 1u << 31 | bpf_get_smp_processor_id();
}

INLINE u64 now_in(void)
{
    u32 zero = 0;
    u64 *now = bpf_map_lookup_elem(&window, &zero);
    return now ? *(volatile u64 *)now : 0;
}

INLINE u64 pointer(void *regs, u32 at)
{
    u64 value = 0;
    bpf_probe_read_kernel(&value, sizeof(value), regs + at);
    return value;
}

/* Copies a word of a record where it has one. The kernel knows the size when it checks the program, and leaves out what is beyond
 * it: loads with constant offsets take one instruction each, where a helper takes sixty. */
#define WORD(n)                                                                                                                \
    if (size >= (n) + 8) {                                                                                                     \
        u64 value;                                                                                                             \
        __asm__ volatile("%0 = *(u64 *)(%1 + " #n ")" : "=r"(value) : "r"(of));                                                \
        *(u64 *)(record + (n)) = value;                                                                                        \
    } else if (size >= (n) + 4) {                                                                                              \
        u64 value;                                                                                                             \
        __asm__ volatile("%0 = *(u32 *)(%1 + " #n ")" : "=r"(value) : "r"(of));                                                \
        *(u32 *)(record + (n)) = value;                                                                                        \
    }
INLINE void copy(void *of, u8 *record, u32 size)
{
    WORD(8)
    WORD(16)
    WORD(24)
    WORD(32)
    WORD(40)
    WORD(48)
    WORD(56)
    WORD(64)
    WORD(72)
    WORD(80)
    WORD(88)
    WORD(96)
    WORD(104)
    WORD(112)
    WORD(120)
}

/* Puts together what perf would write of an event. The fields of probes are those of struct kprobe_trace_entry_head and
 * kretprobe_trace_entry_head (kernel/trace/trace.h), which probes of user space share. */
INLINE void take(void *of, u8 *record, u32 from, u32 size, u32 id, u32 ip_at)
{
    u64 *words = (u64 *)record;
    switch (from) {
    case FROM_TRACEPOINT:
        if (size <= 128)
            copy(of, record, size);
        else if (size <= RECORD)
            bpf_probe_read_kernel(record, size, of);
        break;
    case FROM_PROBE:
        words[1] = pointer(of, ip_at);
        break;
    case FROM_KERNEL_PROBE:
        words[1] = bpf_get_func_ip(of);
        break;
    case FROM_RETURN:
        words[1] = bpf_get_func_ip(of);
        words[2] = pointer(of, ip_at);
        break;
    }
    /* The first word of a tracepoint's record is a pointer of the kernel's while programs run. */
    struct head *head = (struct head *)record;
    head->id = id;
    head->flags = 0;
    head->preempt_count = 0;
    head->tid = bpf_get_current_pid_tgid();
}

/* What stands behind a record begins at a multiple of 8. */
INLINE u32 end_of(u32 size)
{
    return (size + 7) & ~7u;
}

INLINE int on_first(void *of)
{
    u64 at = bpf_ktime_get_ns(), number = now_in();
    u32 tid = thread(), zero = 0;
    if (!(number & 1))
        return PASS_ON;
    one_more(FIRST);
    struct kept *kept = bpf_map_lookup_elem(&last, &tid);
    if (!kept) {
        struct kept *none = bpf_map_lookup_elem(&blank, &zero);
        if (!none)
            return PASS_ON;
        none->at = 0;
        bpf_map_update_elem(&last, &tid, none, BPF_ANY);
        kept = bpf_map_lookup_elem(&last, &tid);
        if (!kept)
            return PASS_ON;
    }
    take(of, kept->record, pair.first.from, pair.first.size, pair.first.id, pair.first.ip_at);
    kept->at = at;
    kept->window = number;
    kept->cpu = bpf_get_smp_processor_id();
    kept->written = 0;
    return PASS_ON;
}

INLINE void write_second(void *of)
{
    u32 zero = 0, size = pair.second.size;
    struct kept *kept = bpf_map_lookup_elem(&blank, &zero);
    if (!size || size > RECORD || !kept)
        return;
    take(of, kept->record, pair.second.from, size, pair.second.id, pair.second.ip_at);
    size = end_of(size);
    struct trailer *end = (void *)kept->record + size;
    end->before = 0;
    end->cpu = bpf_get_smp_processor_id();
    if (!bpf_perf_event_output(of, &seconds, BPF_F_CURRENT_CPU, kept->record, size + sizeof(*end)))
        one_more(WRITTEN_SECOND);
}

INLINE int on_second(void *of)
{
    u64 at = bpf_ktime_get_ns(), number = now_in();
    u32 tid = thread(), size = end_of(pair.first.size);
    if (!number)
        return PASS_ON;
    one_more(SECOND);
    struct kept *kept = bpf_map_lookup_elem(&last, &tid);
    if (!kept || !(number & 1) || kept->window != number || size > RECORD) {
        one_more(UNSEEN);
        return PASS_ON;
    }
    u64 since = at > kept->at ? at - kept->at : 0;
    if (since < pair.least) {
        one_more(SHORT);
        return PASS_ON;
    }
    /* Of several that follow one, the first has written it. */
    if (!kept->written) {
        struct trailer *end = (void *)kept->record + size;
        end->before = since;
        end->cpu = kept->cpu;
        kept->written = 1;
        if (!bpf_perf_event_output(of, &firsts, BPF_F_CURRENT_CPU, kept->record, size + sizeof(*end)))
            one_more(WRITTEN_FIRST);
    }
    write_second(of);
    return PASS_ON;
}

SEC("tracepoint/first")
int first_tracepoint(void *of)
{
    return on_first(of);
}

SEC("kprobe/first")
int first_probe(void *of)
{
    return on_first(of);
}

SEC("tracepoint/second")
int second_tracepoint(void *of)
{
    return on_second(of);
}

SEC("kprobe/second")
int second_probe(void *of)
{
    return on_second(of);
}
