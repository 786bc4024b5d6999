//! The tables of exits.

/// One table of exit statistics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ExitTable {
    /// Exits by reason.
    Vmexit,
    /// I/O port accesses by port and direction.
    Ioport,
    /// Memory-mapped accesses by address and direction.
    Mmio,
    /// Model specific registers by number and direction.
    Msr,
}

impl ExitTable {
    /// All tables, in the order they are printed.
    pub const ALL: [ExitTable; 4] = [
        ExitTable::Vmexit,
        ExitTable::Ioport,
        ExitTable::Mmio,
        ExitTable::Msr,
    ];

    /// Returns the name `perf kvm stat report --event` gives it.
    pub fn name(self) -> &'static str {
        match self {
            ExitTable::Vmexit => "vmexit",
            ExitTable::Ioport => "ioport",
            ExitTable::Mmio => "mmio",
            ExitTable::Msr => "msr",
        }
    }
}
