//! Formats of events as kernels have them, laid out by their fields, and formats that lie.

use super::draw::Draw;

/// A field of an event: what it is, and where.
#[derive(Debug, Clone)]
pub(super) struct LaidField {
    pub ctype: String,
    pub name: String,
    pub offset: usize,
    pub size: usize,
    pub signed: bool,
}

/// An event with the fields that it has behind the common ones.
#[derive(Debug, Clone)]
pub(super) struct LaidEvent {
    pub system: &'static str,
    pub name: &'static str,
    pub id: u16,
    pub fields: Vec<LaidField>,
    print: String,
    /// Bytes of a record.
    pub size: usize,
}

/// System and event; `TYPE NAME SIZE`, where a size below zero means signed, separated by `;`; the print format.
const EVENTS: &[(&str, &str, &str)] = &[
    (
        "kvm:kvm_entry",
        "unsigned int vcpu_id 4;unsigned long rip 8",
        "\"vcpu %u, rip 0x%lx\", REC->vcpu_id, REC->rip",
    ),
    (
        "kvm:kvm_exit",
        "unsigned int exit_reason 4;unsigned long guest_rip 8;u32 isa 4;u64 info1 8;u64 info2 8;u32 intr_info 4;\
         u32 error_code 4;unsigned int vcpu_id 4",
        "\"vcpu %u reason %s%s rip 0x%lx info1 0x%016llx info2 0x%016llx\", REC->vcpu_id, (REC->isa == 1) ? \
         __print_symbolic(REC->exit_reason & 0xffff, { 1, \"EXTERNAL_INTERRUPT\" }, { 12, \"HLT\" }, { 30, \
         \"IO_INSTRUCTION\" }, { 32, \"MSR_WRITE\" }, { 48, \"EPT_VIOLATION\" }) : __print_symbolic(REC->exit_reason, \
         { 0x078, \"hlt\" }), (REC->isa == 1 && REC->exit_reason & ~0xffff) ? \" \" : \"\", REC->guest_rip, \
         REC->info1, REC->info2",
    ),
    (
        "kvm:kvm_userspace_exit",
        "__u32 reason 4;int errno -4",
        "\"reason %s (%d)\", REC->errno < 0 ? (REC->errno == -4 ? \"restart\" : \"error\") : \
         __print_symbolic(REC->reason, { 2, \"KVM_EXIT_IO\" }, { 6, \"KVM_EXIT_MMIO\" }), REC->errno < 0 ? \
         -REC->errno : REC->reason",
    ),
    (
        "kvm:kvm_pio",
        "unsigned int rw 4;unsigned int port 4;unsigned int size 4;unsigned int count 4;unsigned int val 4",
        "\"pio_%s at 0x%x size %d count %d val 0x%x\", REC->rw ? \"write\" : \"read\", REC->port, REC->size, \
         REC->count, REC->val",
    ),
    (
        "kvm:kvm_mmio",
        "u32 type 4;u32 len 4;u64 gpa 8;u64 val 8",
        "\"mmio %s len %u gpa 0x%llx val 0x%llx\", __print_symbolic(REC->type, { 0, \"unsatisfied-read\" }, { 1, \
         \"read\" }, { 2, \"write\" }), REC->len, REC->gpa, REC->val",
    ),
    (
        "kvm:kvm_msr",
        "unsigned write 4;u32 ecx 4;u64 data 8;u8 exception 1",
        "\"msr_%s %x = 0x%llx%s\", REC->write ? \"write\" : \"read\", REC->ecx, REC->data, \
         REC->exception ? \" (#GP)\" : \"\"",
    ),
    (
        "kvm:kvm_halt_poll_ns",
        "bool grow 1;unsigned int vcpu_id 4;unsigned int new 4;unsigned int old 4",
        "\"vcpu %u: halt_poll_ns %u (%s %u)\", REC->vcpu_id, REC->new, REC->grow ? \"grow\" : \"shrink\", REC->old",
    ),
    (
        "kvm:kvm_vcpu_wakeup",
        "__u64 ns 8;bool waited 1;bool valid 1",
        "\"%s time %lld ns, polling %s\", REC->waited ? \"wait\" : \"poll\", REC->ns, \
         REC->valid ? \"valid\" : \"invalid\"",
    ),
    (
        "kvm:kvm_inj_virq",
        "unsigned int vector 4;bool soft 1;bool reinjected 1",
        "\"IRQ 0x%x\", REC->vector",
    ),
    (
        "kvm:kvm_set_irq",
        "unsigned int gsi 4;int level -4;int irq_source_id -4",
        "\"gsi %u level %d source %d\", REC->gsi, REC->level, REC->irq_source_id",
    ),
    (
        "kvm:kvm_msi_set_irq",
        "u64 address 8;u64 data 8",
        "\"dst %llx vec %u\", (u8)(REC->address >> 12) | ((REC->address >> 32) & 0xffffff00), (u8)REC->data",
    ),
    (
        "kvm:kvm_apic_accept_irq",
        "__u32 apicid 4;__u16 dm 2;__u16 tm 2;__u8 vec 1",
        "\"apicid %x vec %u (%s|%s)\", REC->apicid, REC->vec, \
      __print_symbolic((REC->dm >> 8 & 0x7), { 0x0, \"Fixed\" }), REC->tm ? \"level\" : \"edge\"",
    ),
    (
        "kvm:kvm_apic_ipi",
        "__u32 icr_low 4;__u32 dest_id 4",
        "\"dst %x vec %u\", REC->dest_id, (u8)REC->icr_low",
    ),
    (
        "kvm:kvm_eoi",
        "__u32 apicid 4;int vector -4",
        "\"apicid %x vector %d\", REC->apicid, REC->vector",
    ),
    (
        "kvm:kvm_page_fault",
        "unsigned int vcpu_id 4;unsigned long guest_rip 8;u64 fault_address 8;u64 error_code 8",
        "\"vcpu %u rip 0x%lx address 0x%016llx error_code 0x%llx\", REC->vcpu_id, REC->guest_rip, REC->fault_address, \
      REC->error_code",
    ),
    (
        "kvm:kvm_hypercall",
        "unsigned long nr 8;unsigned long a0 8;unsigned long a1 8;unsigned long a2 8;unsigned long a3 8",
        "\"nr 0x%lx a0 0x%lx\", REC->nr, REC->a0",
    ),
    (
        "kvm:kvm_fast_mmio",
        "u64 gpa 8",
        "\"fast mmio at gpa 0x%llx\", REC->gpa",
    ),
    (
        "kvm:kvm_nested_vmexit",
        "unsigned int exit_reason 4;unsigned long guest_rip 8;u32 isa 4;u64 info1 8;u64 info2 8;u32 intr_info 4;\
      u32 error_code 4;unsigned int vcpu_id 4",
        "\"vcpu %u reason %x\", REC->vcpu_id, REC->exit_reason",
    ),
    (
        "kvm:kvm_unmap_hva_range",
        "unsigned long start 8;unsigned long end 8",
        "\"mmu notifier unmap range: 0x%016lx -- 0x%016lx\", REC->start, REC->end",
    ),
    (
        "kvm:kvm_pv_tlb_flush",
        "u32 need_flush_count 4;u32 vcpu_id 4",
        "\"%u\", REC->vcpu_id",
    ),
    (
        "sched:sched_switch",
        "char prev_comm[16] 16;pid_t prev_pid -4;int prev_prio -4;long prev_state -8;char next_comm[16] 16;\
      pid_t next_pid -4;int next_prio -4",
        "\"prev_comm=%s prev_pid=%d prev_prio=%d prev_state=%s%s ==> next_comm=%s next_pid=%d next_prio=%d\", \
      REC->prev_comm, REC->prev_pid, REC->prev_prio, (REC->prev_state & 0xff) ? __print_flags(REC->prev_state & 0xff, \
      \"|\", { 0x01, \"S\" }, { 0x02, \"D\" }) : \"R\", REC->prev_state & 0x100 ? \"+\" : \"\", REC->next_comm, \
      REC->next_pid, REC->next_prio",
    ),
    (
        "sched:sched_wakeup",
        "char comm[16] 16;pid_t pid -4;int prio -4;int target_cpu -4",
        "\"comm=%s pid=%d prio=%d target_cpu=%03d\", REC->comm, REC->pid, REC->prio, REC->target_cpu",
    ),
    (
        "sched:sched_waking",
        "char comm[16] 16;pid_t pid -4;int prio -4;int target_cpu -4",
        "\"comm=%s pid=%d prio=%d target_cpu=%03d\", REC->comm, REC->pid, REC->prio, REC->target_cpu",
    ),
    (
        "sched:sched_migrate_task",
        "char comm[16] 16;pid_t pid -4;int prio -4;int orig_cpu -4;int dest_cpu -4",
        "\"comm=%s pid=%d prio=%d orig_cpu=%d dest_cpu=%d\", REC->comm, REC->pid, REC->prio, \
         REC->orig_cpu, REC->dest_cpu",
    ),
    (
        "sched:sched_process_fork",
        "char parent_comm[16] 16;pid_t parent_pid -4;char child_comm[16] 16;pid_t child_pid -4",
        "\"comm=%s pid=%d child_comm=%s child_pid=%d\", REC->parent_comm, \
         REC->parent_pid, REC->child_comm, REC->child_pid",
    ),
    (
        "sched:sched_process_exit",
        "char comm[16] 16;pid_t pid -4;int prio -4",
        "\"comm=%s pid=%d prio=%d\", REC->comm, REC->pid, REC->prio",
    ),
    (
        "sched:sched_stat_runtime",
        "char comm[16] 16;pid_t pid -4;u64 runtime 8;u64 vruntime 8",
        "\"comm=%s pid=%d runtime=%Lu [ns]\", REC->comm, REC->pid, (unsigned long long)REC->runtime",
    ),
    (
        "sched:sched_process_exec",
        "__data_loc char[] filename -4;pid_t pid -4;pid_t old_pid -4",
        "\"filename=%s pid=%d old_pid=%d\", __get_str(filename), REC->pid, REC->old_pid",
    ),
    (
        "irq:irq_handler_entry",
        "int irq -4;__data_loc char[] name -4",
        "\"irq=%d name=%s\", REC->irq, __get_str(name)",
    ),
    (
        "irq:irq_handler_exit",
        "int irq -4;int ret -4",
        "\"irq=%d ret=%s\", REC->irq, REC->ret ? \"handled\" : \"unhandled\"",
    ),
    (
        "irq:softirq_entry",
        "unsigned int vec 4",
        "\"vec=%u [action=%s]\", REC->vec, __print_symbolic(REC->vec, { 1, \"TIMER\" }, { 3, \"NET_RX\" })",
    ),
    (
        "irq:softirq_exit",
        "unsigned int vec 4",
        "\"vec=%u\", REC->vec",
    ),
    (
        "workqueue:workqueue_execute_start",
        "void * work 8;void * function 8",
        "\"work struct %p: function %ps\", REC->work, REC->function",
    ),
    (
        "workqueue:workqueue_execute_end",
        "void * work 8;void * function 8",
        "\"work struct %p\", REC->work",
    ),
    (
        "workqueue:workqueue_queue_work",
        "void * work 8;void * function 8;__data_loc char[] workqueue -4;int req_cpu -4;int cpu -4",
        "\"work struct=%p function=%ps workqueue=%s\", REC->work, REC->function, __get_str(workqueue)",
    ),
    (
        "timer:hrtimer_expire_entry",
        "void * hrtimer 8;s64 now -8;void * function 8",
        "\"hrtimer=%p function=%ps now=%llu\", REC->hrtimer, REC->function, (unsigned long long) REC->now",
    ),
    (
        "timer:hrtimer_expire_exit",
        "void * hrtimer 8",
        "\"hrtimer=%p\", REC->hrtimer",
    ),
    (
        "power:cpu_idle",
        "u32 state 4;u32 cpu_id 4",
        "\"state=%lu cpu_id=%lu\", (unsigned long)REC->state, (unsigned long)REC->cpu_id",
    ),
    (
        "power:cpu_frequency",
        "u32 state 4;u32 cpu_id 4",
        "\"state=%lu cpu_id=%lu\", (unsigned long)REC->state, (unsigned long)REC->cpu_id",
    ),
    (
        "irq_vectors:local_timer_entry",
        "int vector -4",
        "\"vector=%d\", REC->vector",
    ),
    (
        "irq_vectors:reschedule_entry",
        "int vector -4",
        "\"vector=%d\", REC->vector",
    ),
    (
        "raw_syscalls:sys_enter",
        "long id -8;unsigned long args[6] 48",
        "\"NR %ld (%lx, %lx)\", REC->id, REC->args[0], REC->args[1]",
    ),
    (
        "raw_syscalls:sys_exit",
        "long id -8;long ret -8",
        "\"NR %ld = %ld\", REC->id, REC->ret",
    ),
];

/// Returns the events, as a kernel lays them out.
pub(super) fn events() -> Vec<LaidEvent> {
    let all = EVENTS.iter().zip(300..);
    all.map(|((name, fields, print), id)| laid(name, fields, print, id))
        .collect()
}

fn laid(name: &'static str, declared: &str, print: &str, id: u16) -> LaidEvent {
    let (system, name) = name.split_once(':').expect("SYSTEM:NAME");
    let mut at = 8usize;
    let mut fields = Vec::new();
    for field in declared.split(';') {
        let (rest, size) = field.trim().rsplit_once(' ').expect("a size");
        let (ctype, name) = rest.rsplit_once(' ').expect("a name");
        let size: i64 = size.parse().expect("a number");
        let bytes = size.unsigned_abs() as usize;
        let align = if name.contains('[') && ctype.starts_with("char") {
            1
        } else {
            bytes.min(8)
        };
        at = at.next_multiple_of(align);
        fields.push(LaidField {
            ctype: ctype.to_owned(),
            name: name.to_owned(),
            offset: at,
            size: bytes,
            signed: size < 0,
        });
        at += bytes;
    }
    LaidEvent {
        system,
        name,
        id,
        fields,
        print: print.to_owned(),
        size: at.next_multiple_of(8),
    }
}

impl LaidEvent {
    /// Returns the text of its format, true or absurd.
    pub(super) fn text(&self, draw: &mut Draw) -> String {
        let mut out = format!(
            "name: {}\nID: {}\nformat:\n",
            self.name,
            draw.or_edge(u64::from(self.id))
        );
        for (ctype, name, offset, size, signed) in [
            ("unsigned short", "common_type", 0, 2, 0),
            ("unsigned char", "common_flags", 2, 1, 0),
            ("unsigned char", "common_preempt_count", 3, 1, 0),
            ("int", "common_pid", 4, 4, 1),
        ] {
            let again = if draw.absurd() { 2 } else { 1 };
            for _ in 0..again {
                let (offset, size) = (draw.or_edge(offset), draw.or_edge(size));
                out.push_str(&format!(
                    "\tfield:{ctype} {name};\toffset:{offset};\tsize:{size};\tsigned:{signed};\n"
                ));
            }
        }
        out.push('\n');
        for field in &self.fields {
            out.push_str(&field_line(field, draw));
        }
        let print = match draw.absurd() {
            true => absurd_print(&self.fields, draw),
            false => self.print.clone(),
        };
        out + "\nprint fmt: " + &print + "\n"
    }
}

fn field_line(field: &LaidField, draw: &mut Draw) -> String {
    let (mut ctype, mut name) = (field.ctype.clone(), field.name.clone());
    let offset = draw.or_edge(field.offset as u64);
    let size = draw.or_edge(field.size as u64);
    let mut signed = u64::from(field.signed);
    if draw.absurd() {
        match draw.below(6) {
            0 => {
                ctype = draw
                    .of(&[
                        "__data_loc char[]",
                        "__rel_loc char[]",
                        "struct list",
                        "u128",
                        "",
                        "char **",
                    ])
                    .to_owned()
            }
            1 => name.push_str(&format!("[{}]", draw.odd_number())),
            2 => name = "common_type".to_owned(),
            3 => name = String::from_utf8_lossy(&draw.odd_name()).into_owned(),
            4 => signed = draw.edge(),
            _ => return String::new(),
        }
    }
    let line =
        format!("\tfield:{ctype} {name};\toffset:{offset};\tsize:{size};\tsigned:{signed};\n");
    match draw.absurd() {
        true => line.repeat(1 + draw.below(3)),
        false => line,
    }
}

/// Print formats that nest, print pointers as strings, divide by nothing, shift too far, and never end.
fn absurd_print(fields: &[LaidField], draw: &mut Draw) -> String {
    let field = draw.of(fields).name;
    let field = field.split('[').next().unwrap_or_default();
    let deep = 1 + draw.below(3000);
    match draw.below(14) {
        0 => format!(
            "\"%d\", {}REC->{field}{}",
            "(".repeat(deep),
            ")".repeat(deep)
        ),
        1 => format!("\"%d\", {}REC->{field}", "-~!".repeat(deep)),
        2 => format!("\"%s\", REC->{field}"),
        3 => format!(
            "\"%s %s %pS %pI6 %ph %*ph %pUb\", REC->{field}, {}, REC->{field}",
            draw.edge()
        ),
        4 => format!(
            "\"%{}d %.{}s %0*d\", REC->{field}, REC->{field}, REC->{field}",
            draw.odd_number(),
            draw.odd_number()
        ),
        5 => format!(
            "\"%d\", REC->{field} / 0 + REC->{field} % 0 + (REC->{field} << {}) + (-9223372036854775807 - 1) / -1",
            draw.edge()
        ),
        6 => format!(
            "\"%s\", {}",
            format!("REC->{field} ? \"a\" : ").repeat(deep) + "\"b\""
        ),
        7 => format!(
            "\"%s\", __print_symbolic(REC->{field}, {})",
            format!("{{ {}, \"x\" }}, ", draw.edge()).repeat(deep)
        ),
        8 => format!(
            "\"%s\", __print_flags(REC->{field}, \"{}\", {{ 0, \"\" }}, {{ -1, \"all\" }})",
            "|".repeat(deep)
        ),
        9 => format!(
            "\"%s\", __get_str({field}), __get_dynamic_array({field}), \
             __print_array(__get_dynamic_array({field}), {}, {})",
            draw.edge(),
            draw.edge()
        ),
        10 => format!("\"%s\", __print_hex(REC->{field}, {})", draw.edge()),
        11 => format!("\"{}\", REC->{field}", "%d%s%llx%p%c%%".repeat(deep)),
        12 => {
            format!("\"%s\", __get_bitmask({field}), __print_hex_str(REC->{field}, REC->{field})")
        }
        _ => format!(
            "\"%d %d\", REC->{field}, REC->{field}[{}], sizeof({field}), ((struct x *)REC->{field})->y",
            draw.odd_number()
        ),
    }
}
