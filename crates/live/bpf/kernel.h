/* What programs share with the kernel: numbers of helpers and maps (include/uapi/linux/bpf.h), and the members of its structs
 * that are read. Where those are is found out when a program is loaded, from the running kernel's BTF (CO-RE). */
#pragma once

typedef unsigned char u8;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef int s32;
typedef long long s64;

#define SEC(name) __attribute__((section(name), used))
#define INLINE static inline __attribute__((always_inline))
/* Keeps the compiler from moving stores over it. */
#define barrier() __asm__ volatile("" ::: "memory")

/* Members of a map's definition, as BTF has them. */
#define MAP_NUMBER(name, value) int(*name)[value]
#define MAP_TYPE(name, value) value *name

enum {
    BPF_MAP_TYPE_HASH = 1,
    BPF_MAP_TYPE_ARRAY = 2,
    BPF_MAP_TYPE_PERF_EVENT_ARRAY = 4,
    BPF_MAP_TYPE_PERCPU_ARRAY = 6,
    BPF_MAP_TYPE_LRU_HASH = 9,
    BPF_MAP_TYPE_STACK = 23
};
enum { BPF_ANY = 0, BPF_NOEXIST = 1 };
enum { BPF_F_MMAPABLE = 1 << 10 };
#define BPF_F_CURRENT_CPU 0xffffffffull

static void *(*const bpf_map_lookup_elem)(void *map, const void *key) = (void *)1;
static long (*const bpf_map_update_elem)(void *map, const void *key, const void *value, u64 flags) = (void *)2;
static u64 (*const bpf_ktime_get_ns)(void) = (void *)5;
static u32 (*const bpf_get_smp_processor_id)(void) = (void *)8;
static u64 (*const bpf_get_current_pid_tgid)(void) = (void *)14;
static long (*const bpf_perf_event_output)(void *of, void *map, u64 flags, void *bytes, u64 size) = (void *)25;
static long (*const bpf_map_pop_elem)(void *map, void *value) = (void *)88;
static long (*const bpf_probe_read_kernel)(void *to, u32 size, const void *from) = (void *)113;
static u64 (*const bpf_get_func_ip)(void *of) = (void *)173;

/* What a program of type tracepoint or kprobe returns: 0 would keep the event from perf (perf_trace_run_bpf_submit of
 * kernel/events/core.c), and so from whoever records at the same time. */
#define PASS_ON 1

/* The arguments of a tracepoint as a raw_tp program has them (struct bpf_raw_tracepoint_args). */
struct args {
    u64 arg[0];
};

/* A field of a record. */
INLINE u32 read32(const void *record, s32 at)
{
    u32 value = 0;
    if (at >= 0)
        bpf_probe_read_kernel(&value, sizeof(value), record + at);
    return value;
}

/* A field of a record that is read with an offset in the instruction itself, which costs one instruction where a helper costs sixty. The
 * kernel knows the offset when it checks the program, and leaves all cases out but one. */
#define FIELD(n)                                                                                                               \
    case n:                                                                                                                    \
        __asm__ volatile("%0 = *(u32 *)(%1 + " #n ")" : "=r"(value) : "r"(record));                                            \
        break;
INLINE u32 field32(const void *record, s32 at)
{
    u64 value = 0;
    switch (at) {
        FIELD(8)
        FIELD(12)
        FIELD(16)
        FIELD(20)
        FIELD(24)
        FIELD(28)
        FIELD(32)
        FIELD(36)
        FIELD(40)
        FIELD(44)
        FIELD(48)
        FIELD(52)
        FIELD(56)
        FIELD(60)
    default:
        return read32(record, at);
    }
    return value;
}

#define CORE __attribute__((preserve_access_index))

/* include/linux/sched.h. `__state` is called `state` before 5.14. */
struct thread_info {
    u32 cpu;
} CORE;

struct task_struct {
    struct thread_info thread_info;
    unsigned int __state;
    s32 wake_cpu;
    s32 prio;
    s32 exit_state;
    s32 pid;
    char comm[16];
} CORE;

struct task_struct___before_5_14 {
    long state;
} CORE;

#define HAS_FIELD(of) __builtin_preserve_field_info(of, 2 /* BPF_FIELD_EXISTS */)
