//! Fields of events without a typed view that conditions ask for by one name, whatever the recording is: where they are
//! in records, and how texts print them (`print fmt` of 6.1; `arch/x86/kvm/trace.h`, `include/trace/events/kvm.h`,
//! `arch/arm64/kvm/trace_arm.h`, `arch/arm64/kvm/vgic/trace.h`).
//!
//! All other fields have the name that the record has, and are printed behind it.

/// How numbers stand in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NumberBase {
    /// Decimal, or hexadecimal behind `0x`.
    Any,
    /// Hexadecimal, with `0x` or without.
    Hex,
}

/// Some bits of a field of a record.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FieldBits {
    pub field: &'static str,
    pub shift: u32,
    pub mask: u64,
}

/// Where a field is in records.
#[derive(Debug, Clone, Copy)]
pub(crate) enum InRecord {
    /// In the first of these that the format has.
    Bits(&'static [FieldBits]),
    /// Under the same name; kernels that do not record it mean 0.
    OrZero,
    /// In five fields, which are decimal places of 100 each: a system register's op0, op1, CRn, CRm, op2.
    Places(&'static [&'static str; 5]),
}

/// How a text prints a field.
#[derive(Debug, Clone, Copy)]
pub(crate) enum InText {
    /// Behind the first of these words that stands there; of the number these bits count.
    Behind(&'static [(&'static str, NumberBase)], u64),
    /// It is 1 where the text has these words.
    Has(&'static str),
    /// It is 1 where the text ends in this word, or has this field with 1.
    EndsIn(&'static str, &'static str),
    /// As a delivery mode in brackets: `(Fixed|edge)`.
    Mode,
    /// As `MAJOR,MINOR` at the beginning: the kernel's number of a block device.
    Device,
    /// As the number before this word.
    Before(&'static str),
    /// As five numbers in brackets, `(3,0,12,11,5)`, or as the fields of [`InRecord::Places`].
    Places(&'static [&'static str; 5]),
}

/// A field of an event.
#[derive(Debug)]
pub(crate) struct NamedField {
    pub event: &'static str,
    pub name: &'static str,
    pub record: InRecord,
    pub text: InText,
}

const fn field(
    event: &'static str,
    name: &'static str,
    record: InRecord,
    text: InText,
) -> NamedField {
    NamedField {
        event,
        name,
        record,
        text,
    }
}

/// Some bits of a field.
macro_rules! bits {
    ($($field:literal $(>> $shift:literal)? $(& $mask:literal)?),+) => {
        InRecord::Bits(&[$(FieldBits {
            field: $field,
            shift: 0 $(+ $shift)?,
            mask: u64::MAX $(& $mask)?,
        }),+])
    };
}

/// A number behind a word.
macro_rules! behind {
    ($($word:literal $radix:ident),+ $(; & $mask:literal)?) => {
        InText::Behind(&[$(($word, NumberBase::$radix)),+], u64::MAX $(& $mask)?)
    };
}

const SYSREG: &[&str; 5] = &["Op0", "Op1", "CRn", "CRm", "Op2"];

const FIELDS: [NamedField; 34] = [
    field(
        "kvm_apic_accept_irq",
        "level",
        bits!("tm"),
        InText::Has("|level)"),
    ),
    field(
        "kvm_apic_accept_irq",
        "vector",
        bits!("vec"),
        behind!("vec" Any),
    ),
    field(
        "kvm_apic_accept_irq",
        "apicid",
        bits!("apicid"),
        behind!("apicid" Hex),
    ),
    field(
        "kvm_apic_accept_irq",
        "mode",
        bits!("dm" >> 8 & 7),
        InText::Mode,
    ),
    field(
        "kvm_apic_ipi",
        "vector",
        bits!("icr_low" & 0xff),
        behind!("vec" Any; & 0xff),
    ),
    field(
        "kvm_apic_ipi",
        "mode",
        bits!("icr_low" >> 8 & 7),
        InText::Mode,
    ),
    field("kvm_apic_ipi", "dest", bits!("dest_id"), behind!("dst" Hex)),
    field(
        "kvm_msi_set_irq",
        "vector",
        bits!("data" & 0xff),
        behind!("vec" Any; & 0xff),
    ),
    field(
        "kvm_msi_set_irq",
        "mode",
        bits!("data" >> 8 & 7),
        InText::Mode,
    ),
    field(
        "kvm_msi_set_irq",
        "dest",
        bits!("address" >> 12 & 0xff),
        behind!("dst" Hex),
    ),
    // Kernels before 5.19 call it irq.
    field(
        "kvm_inj_virq",
        "vector",
        bits!("vector", "irq"),
        behind!("IRQ" Hex, "irq" Any),
    ),
    field(
        "kvm_inj_virq",
        "reinjected",
        InRecord::OrZero,
        InText::Has("[reinjected]"),
    ),
    field("kvm_set_irq", "gsi", bits!("gsi"), behind!("gsi" Any)),
    field("kvm_set_irq", "level", bits!("level"), behind!("level" Any)),
    field("kvm_fast_mmio", "address", bits!("gpa"), behind!("gpa" Hex)),
    field(
        "kvm_hypercall",
        "vector",
        bits!("a2" & 0xff),
        behind!("a2" Hex; & 0xff),
    ),
    field("kvm_hypercall", "nr", bits!("nr"), behind!("nr" Hex)),
    field(
        "kvm_hv_send_ipi",
        "vector",
        bits!("vector"),
        behind!("vector" Any),
    ),
    field(
        "kvm_hv_send_ipi_ex",
        "vector",
        bits!("vector"),
        behind!("vector" Any),
    ),
    field(
        "vgic_update_irq_pending",
        "vcpu",
        bits!("vcpu_id"),
        behind!("VCPU:" Any),
    ),
    field(
        "vgic_update_irq_pending",
        "irq",
        bits!("irq"),
        behind!("IRQ" Any),
    ),
    field(
        "vgic_update_irq_pending",
        "level",
        bits!("level"),
        behind!("level:" Any),
    ),
    field(
        "kvm_timer_update_irq",
        "vcpu",
        bits!("vcpu_id"),
        behind!("VCPU:" Any),
    ),
    field(
        "kvm_timer_update_irq",
        "irq",
        bits!("irq"),
        behind!("IRQ" Any),
    ),
    field(
        "kvm_timer_update_irq",
        "level",
        bits!("level"),
        behind!("level" Any),
    ),
    field("kvm_irq_line", "irq", bits!("irq_num"), behind!("num:" Any)),
    field(
        "kvm_irq_line",
        "vcpu",
        bits!("vcpu_idx"),
        behind!("vcpu->idx:" Any),
    ),
    field(
        "kvm_irq_line",
        "level",
        bits!("level"),
        behind!("level:" Any),
    ),
    field(
        "kvm_sys_access",
        "sysreg",
        InRecord::Places(SYSREG),
        InText::Places(SYSREG),
    ),
    // libtraceevent cannot parse the event's print format, and prints all fields by name.
    field(
        "kvm_sys_access",
        "write",
        bits!("is_write"),
        InText::EndsIn("write", "is_write=1"),
    ),
    // include/trace/events/block.h: "%d,%d %s %u (%s) %llu + %u [%s]", from Linux 6.11 on with a priority behind the
    // last number.
    field("block_rq_issue", "dev", bits!("dev"), InText::Device),
    field(
        "block_rq_issue",
        "sector",
        bits!("sector"),
        InText::Before("+"),
    ),
    field("block_rq_complete", "dev", bits!("dev"), InText::Device),
    field(
        "block_rq_complete",
        "sector",
        bits!("sector"),
        InText::Before("+"),
    ),
];

/// Returns what is known of a field.
pub(crate) fn find(event: &str, name: &str) -> Option<&'static NamedField> {
    FIELDS
        .iter()
        .find(|field| field.event == event && field.name == name)
}
