/* The programs: each takes what its event says, and hands it on.
 *
 * kvm_exit is read as a record (a program of type tracepoint) on x86, since its reason is in no argument of the tracepoint. All
 * other events of KVM say what they have in their arguments, so their records need not be made (raw_tp). The scheduler's come in
 * two forms: by argument (tp_btf), or as records where a kernel has no BTF.
 *
 * The kernel lets programs of this licence alone read its memory; MIT is one of the project's two. */
#include "kvm.h"

char terms[] SEC("license") = "Dual MIT/GPL";

INLINE void on_arm_exit(u32 ret, u32 class)
{
    u32 top = ret & 0x7fffffff;
    /* What is in the field after anything but a trap is an earlier trap's. */
    on_exit(3, (u64)(top == layout.arm_trap ? class : 0) << 32 | top, -1);
}

SEC("tracepoint/kvm/kvm_exit")
int kvm_exit(void *record)
{
    if (layout.exit_class >= 0) {
        u32 ret = layout.exit_ret >= 0 ? field32(record, layout.exit_ret) : layout.arm_trap;
        on_arm_exit(ret, field32(record, layout.exit_class));
        return PASS_ON;
    }
    u32 kind = layout.exit_isa >= 0 ? field32(record, layout.exit_isa) : 1;
    s32 number = layout.exit_vcpu >= 0 ? (s32)field32(record, layout.exit_vcpu) : -1;
    on_exit(kind == 2 ? 2 : 1, field32(record, layout.exit_reason), number);
    return PASS_ON;
}

SEC("raw_tp/kvm_exit")
int kvm_exit_by_argument(struct args *args)
{
    on_arm_exit(args->arg[0], args->arg[1]);
    return 0;
}

SEC("raw_tp/kvm_entry")
int kvm_entry(void *unused)
{
    on_entry();
    return 0;
}

SEC("raw_tp/kvm_userspace_exit")
int kvm_userspace_exit(struct args *args)
{
    /* Where KVM_RUN failed, as for a signal, the reason is an earlier one's. */
    on_userspace_exit((s32)args->arg[1] < 0 ? 0 : args->arg[0]);
    return 0;
}

SEC("raw_tp/kvm_fpu")
int kvm_fpu(struct args *args)
{
    on_fpu(args->arg[0]);
    return 0;
}

SEC("raw_tp/kvm_pio")
int kvm_pio(struct args *args)
{
    on_port(args->arg[0], args->arg[1]);
    return 0;
}

SEC("raw_tp/kvm_mmio")
int kvm_mmio(struct args *args)
{
    on_mmio(args->arg[0], args->arg[2]);
    return 0;
}

SEC("raw_tp/kvm_msr")
int kvm_msr(struct args *args)
{
    on_register(args->arg[0], args->arg[1]);
    return 0;
}

SEC("raw_tp/kvm_fast_mmio")
int kvm_fast_mmio(struct args *args)
{
    on_fast_mmio(args->arg[0]);
    return 0;
}

SEC("raw_tp/kvm_halt_poll_ns")
int kvm_halt_poll_ns(struct args *args)
{
    on_poll_length(args->arg[2], args->arg[3]);
    return 0;
}

SEC("raw_tp/kvm_vcpu_wakeup")
int kvm_vcpu_wakeup(struct args *args)
{
    on_halted(args->arg[0], !!(u8)args->arg[1]);
    return 0;
}

struct switch_args {
    u64 preempt;
    struct task_struct *prev;
    struct task_struct *next;
};

INLINE u64 state_of_task(struct task_struct *task)
{
    struct task_struct___before_5_14 *old = (void *)task;
    if (HAS_FIELD(old->state))
        return old->state;
    return task->__state;
}

SEC("tp_btf/sched_switch")
int sched_switch(struct switch_args *args)
{
    struct task_struct *prev = args->prev, *next = args->next;
    int runnable = (u8)args->preempt || !state_of_task(prev);
    on_switch(prev->pid, prev->comm, runnable, next->pid);
    return 0;
}

struct task_args {
    struct task_struct *task;
    u64 number;
};

SEC("tp_btf/sched_wakeup")
int sched_wakeup(struct task_args *args)
{
    struct task_struct *task = args->task;
    /* The CPU on whose queue it is: it is put down together with the task's own. */
    on_wakeup(task->pid, task->wake_cpu);
    return 0;
}

SEC("tp_btf/sched_migrate_task")
int sched_migrate_task(struct task_args *args)
{
    on_migrate(args->task->pid, args->number);
    return 0;
}

SEC("tp_btf/sched_process_exit")
int sched_process_exit(struct task_args *args)
{
    on_end(args->task->pid);
    return 0;
}

SEC("tracepoint/sched/sched_switch")
int record_sched_switch(void *record)
{
    u64 state = 0;
    if (layout.switch_prev_state_size == 8)
        bpf_probe_read_kernel(&state, 8, record + layout.switch_prev_state);
    else
        state = read32(record, layout.switch_prev_state);
    /* As event's TaskState::leaves: nothing, or the mark of preemption. */
    int runnable = !state || state & 0x100 || state >= 0x400;
    const void *comm = record + layout.switch_prev_comm;
    on_switch(read32(record, layout.switch_prev_pid), comm, runnable, read32(record, layout.switch_next_pid));
    return PASS_ON;
}

SEC("tracepoint/sched/sched_wakeup")
int record_sched_wakeup(void *record)
{
    on_wakeup(read32(record, layout.wakeup_pid), read32(record, layout.wakeup_target));
    return PASS_ON;
}

SEC("tracepoint/sched/sched_migrate_task")
int record_sched_migrate_task(void *record)
{
    on_migrate(read32(record, layout.migrate_pid), read32(record, layout.migrate_dest));
    return PASS_ON;
}

SEC("tracepoint/sched/sched_process_exit")
int record_sched_process_exit(void *record)
{
    on_end(read32(record, layout.end_pid));
    return PASS_ON;
}
