//! Stacks out of registers and a piece of the stack, by the tables that files have for it.

use std::ops::Range;
use std::sync::Arc;

use framehop::aarch64::{CacheAarch64, PtrAuthMask, UnwindRegsAarch64, UnwinderAarch64};
use framehop::x86_64::{CacheX86_64, Reg, UnwindRegsX86_64, UnwinderX86_64};
use framehop::{ExplicitModuleSectionInfo, FrameAddress, Module, UnwindIterator, Unwinder};
use gimli::{BaseAddresses, EhFrameHdr, LittleEndian, Pointer};

use crate::elf::{Elf, LoadSegment, address};
use crate::why::MissingReason;

/// Bytes of tables that are used of one file, and of tables without an index, which has to be made of them.
const MAX_TABLES: u64 = 64 << 20;
const MAX_WITHOUT_INDEX: usize = 2 << 20;

/// Registers of user space, as far as stacks are made of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UserRegisters {
    /// Those of x86-64.
    X86_64 {
        /// The instruction pointer.
        ip: u64,
        /// RAX, RDX, RCX, RBX, RSI, RDI, RBP, RSP, R8 to R15: by their numbers in DWARF.
        all: [u64; 16],
    },
    /// Those of AArch64.
    Aarch64 {
        /// The program counter.
        pc: u64,
        /// The link register.
        lr: u64,
        /// The stack pointer.
        sp: u64,
        /// The frame pointer, X29.
        fp: u64,
    },
}

/// By register's number in DWARF, its `PERF_REG_X86_*` (`arch/x86/include/uapi/asm/perf_regs.h`) and what framehop
/// calls it.
const X86_64: [(u32, Reg); 16] = [
    (0, Reg::RAX),
    (3, Reg::RDX),
    (2, Reg::RCX),
    (1, Reg::RBX),
    (4, Reg::RSI),
    (5, Reg::RDI),
    (6, Reg::RBP),
    (7, Reg::RSP),
    (16, Reg::R8),
    (17, Reg::R9),
    (18, Reg::R10),
    (19, Reg::R11),
    (20, Reg::R12),
    (21, Reg::R13),
    (22, Reg::R14),
    (23, Reg::R15),
];
/// `PERF_REG_X86_IP`, and the number of the stack pointer in DWARF.
const PERF_IP: u32 = 8;
const RSP: usize = 7;

/// Returns a register of those that perf recorded: which there are, a bit each, and their values in the order of their
/// numbers.
fn of_perf(mask: u64, values: &[u64], number: u32) -> Option<u64> {
    let bit = 1 << number;
    let before = (mask & (bit - 1)).count_ones() as usize;
    values.get(before).copied().filter(|_| mask & bit != 0)
}

impl UserRegisters {
    /// Takes those that perf recorded of x86-64, and returns `None` where one is missing that every stack needs. Others
    /// count as 0.
    pub fn x86_64(mask: u64, values: &[u64]) -> Option<UserRegisters> {
        let value = |number| of_perf(mask, values, number);
        value(X86_64[RSP].0)?;
        Some(UserRegisters::X86_64 {
            ip: value(PERF_IP)?,
            all: X86_64.map(|(number, _)| value(number).unwrap_or(0)),
        })
    }

    /// The same of AArch64 (`arch/arm64/include/uapi/asm/perf_regs.h`).
    pub fn aarch64(mask: u64, values: &[u64]) -> Option<UserRegisters> {
        let value = |number| of_perf(mask, values, number);
        Some(UserRegisters::Aarch64 {
            pc: value(32)?,
            lr: value(30)?,
            sp: value(31)?,
            fp: value(29)?,
        })
    }

    fn stack_pointer(&self) -> u64 {
        match self {
            UserRegisters::X86_64 { all, .. } => all[RSP],
            UserRegisters::Aarch64 { sp, .. } => *sp,
        }
    }
}

/// Code that a process has mapped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CodeMapping<'a> {
    /// First address.
    pub start: u64,
    /// First address behind it.
    pub end: u64,
    /// Where in the file it begins.
    pub pgoff: u64,
    /// The file, as the recording has it.
    pub path: &'a [u8],
    /// Its build id.
    pub build_id: Option<&'a [u8]>,
}

/// The tables of one file.
#[derive(Debug)]
pub(crate) struct UnwindTables {
    loads: Vec<LoadSegment>,
    sections: ExplicitModuleSectionInfo<Arc<[u8]>>,
}

impl UnwindTables {
    /// Reads the tables of a file, or of its debug file where it has none.
    pub(crate) fn new(
        binary: Option<Elf>,
        debug: Option<Elf>,
    ) -> Result<UnwindTables, MissingReason> {
        let mut tables: Option<UnwindTables> = None;
        for mut elf in [binary, debug].into_iter().flatten() {
            let sections = sections(&mut elf)?;
            let has_any = sections.eh_frame.is_some() || sections.debug_frame.is_some();
            match &mut tables {
                None if elf.has_layout() => {
                    let loads = std::mem::take(&mut elf.loads);
                    tables = Some(UnwindTables { loads, sections });
                }
                Some(tables) if has_any && tables.sections.eh_frame.is_none() => {
                    tables.sections.debug_frame = sections.debug_frame;
                }
                _ => {}
            }
        }
        tables.ok_or(MissingReason::NoLayout)
    }

    /// Returns how many bytes it takes.
    pub(crate) fn bytes(&self) -> usize {
        let sections = &self.sections;
        let all = [
            &sections.eh_frame,
            &sections.eh_frame_hdr,
            &sections.debug_frame,
        ];
        all.into_iter().flatten().map(|bytes| bytes.len()).sum()
    }

    fn module(&self, mapping: &CodeMapping<'_>) -> Option<Module<Arc<[u8]>>> {
        let stated = address(&self.loads, mapping.pgoff).or_else(|| {
            // A mapping begins at a page, its segment maybe within it.
            let after = |load: &&LoadSegment| load.offset >= mapping.pgoff;
            let next = self
                .loads
                .iter()
                .filter(after)
                .min_by_key(|load| load.offset)?;
            next.address.checked_sub(next.offset - mapping.pgoff)
        })?;
        let range = mapping.start..mapping.end;
        let base = mapping
            .start
            .wrapping_sub(stated)
            .wrapping_add(self.sections.base_svma);
        let name = String::new();
        Some(Module::new(name, range, base, self.sections.clone()))
    }
}

fn sections(elf: &mut Elf) -> Result<ExplicitModuleSectionInfo<Arc<[u8]>>, MissingReason> {
    let range = |elf: &Elf, name: &[u8]| {
        let section = elf.section(name)?;
        Some(section.address..section.address.checked_add(section.size)?)
    };
    let read = |elf: &mut Elf, name: &[u8]| match elf.section(name) {
        Some(section) if section.size <= MAX_TABLES => elf.read(name),
        _ => Ok(None),
    };
    let mut sections = ExplicitModuleSectionInfo {
        base_svma: elf.loads.iter().map(|load| load.address).min().unwrap_or(0),
        text_svma: range(elf, b".text"),
        got_svma: range(elf, b".got"),
        eh_frame_svma: range(elf, b".eh_frame"),
        eh_frame: read(elf, b".eh_frame")?,
        eh_frame_hdr_svma: range(elf, b".eh_frame_hdr"),
        eh_frame_hdr: read(elf, b".eh_frame_hdr")?,
        debug_frame: read(elf, b".debug_frame")?,
        ..ExplicitModuleSectionInfo::default()
    };
    let bases = BaseAddresses::default()
        .set_eh_frame(start(&sections.eh_frame_svma))
        .set_eh_frame_hdr(start(&sections.eh_frame_hdr_svma))
        .set_text(start(&sections.text_svma))
        .set_got(start(&sections.got_svma));
    sections.eh_frame_hdr = (sections.eh_frame_hdr).filter(|index| is_index(index, &bases));
    let small = |bytes: &Arc<[u8]>| !bytes.is_empty() && bytes.len() <= MAX_WITHOUT_INDEX;
    if sections.eh_frame_hdr.is_none() {
        sections.eh_frame = sections.eh_frame.filter(small);
    }
    sections.debug_frame = sections.debug_frame.filter(small);
    Ok(sections)
}

fn start(range: &Option<Range<u64>>) -> u64 {
    range.as_ref().map_or(0, |range| range.start)
}

/// Returns whether `.eh_frame_hdr` is what it says: as many entries, which are of `.eh_frame`. gimli 0.33 does not
/// check the latter when it looks for one of them, nor that their number can be.
fn is_index(bytes: &[u8], bases: &BaseAddresses) -> bool {
    let index = EhFrameHdr::new(bytes, LittleEndian);
    let Ok(index) = index.parse(bases, 8) else {
        return false;
    };
    let Pointer::Direct(first) = index.eh_frame_ptr() else {
        return false;
    };
    let Some(table) = index.table() else {
        return false;
    };
    let mut entries = table.iter(bases);
    loop {
        match entries.next() {
            Ok(Some((_, Pointer::Direct(entry)))) if entry >= first => {}
            Ok(None) => return true,
            _ => return false,
        }
    }
}

/// What makes stacks of one process, as it is mapped at one time.
pub struct Unwinding {
    machine: UnwindMachine,
    /// First addresses of mapped code and those behind their last, in order.
    mapped: Vec<(u64, u64)>,
}

enum UnwindMachine {
    X86_64(UnwinderX86_64<Arc<[u8]>>, Box<CacheX86_64>),
    Aarch64(UnwinderAarch64<Arc<[u8]>>, Box<CacheAarch64>),
}

impl std::fmt::Debug for Unwinding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Unwinding")
            .field("mapped", &self.mapped)
            .finish_non_exhaustive()
    }
}

impl Unwinding {
    /// `aarch64` says whether the process is of that machine, not of x86-64. `tables` has what is known of each
    /// mapping's file.
    pub(crate) fn new<'m>(
        aarch64: bool,
        mappings: impl Iterator<Item = (CodeMapping<'m>, Option<Arc<UnwindTables>>)>,
    ) -> Unwinding {
        let mut machine = match aarch64 {
            false => UnwindMachine::X86_64(UnwinderX86_64::new(), Box::new(CacheX86_64::new())),
            true => UnwindMachine::Aarch64(UnwinderAarch64::new(), Box::new(CacheAarch64::new())),
        };
        let mut mapped = Vec::new();
        for (mapping, tables) in mappings {
            mapped.push((mapping.start, mapping.end));
            let module = tables.and_then(|tables| tables.module(&mapping));
            match (&mut machine, module) {
                (UnwindMachine::X86_64(unwinder, _), Some(module)) => unwinder.add_module(module),
                (UnwindMachine::Aarch64(unwinder, _), Some(module)) => unwinder.add_module(module),
                (_, None) => {}
            }
        }
        mapped.sort_unstable();
        Unwinding { machine, mapped }
    }

    /// Makes a stack of registers and of what was on the stack, from the stack pointer on. Returns addresses, innermost
    /// first: where the CPU was, and of each caller the last byte of its call, as perf has them. The stack ends where
    /// tables end, where what is needed was not recorded, where an address is in no mapped code, and after `most`
    /// addresses.
    pub fn stack(&mut self, registers: &UserRegisters, stack: &[u8], most: usize) -> Vec<u64> {
        let start = registers.stack_pointer();
        let mut read = |address: u64| {
            let at = address.checked_sub(start).ok_or(())?;
            let bytes = stack
                .get(usize::try_from(at).map_err(|_| ())?..)
                .ok_or(())?;
            Ok(u64::from_le_bytes(*bytes.first_chunk().ok_or(())?))
        };
        let mapped = &self.mapped;
        match (&mut self.machine, *registers) {
            (UnwindMachine::X86_64(unwinder, cache), UserRegisters::X86_64 { ip, all }) => {
                let mut registers = UnwindRegsX86_64::new(ip, all[RSP], all[6]);
                for ((_, name), value) in X86_64.iter().zip(all) {
                    registers.set(*name, value);
                }
                let frames = unwinder.iter_frames(ip, registers, cache, &mut read);
                collect(frames, mapped, most)
            }
            (
                UnwindMachine::Aarch64(unwinder, cache),
                UserRegisters::Aarch64 { pc, lr, sp, fp },
            ) => {
                // Addresses of user space have at most 48 bits; above is the signature of a return address.
                let mask = PtrAuthMask::from_max_known_address((1 << 48) - 1);
                let registers = UnwindRegsAarch64::new_with_ptr_auth_mask(mask, lr, sp, fp);
                let frames = unwinder.iter_frames(pc, registers, cache, &mut read);
                collect(frames, mapped, most)
            }
            _ => Vec::new(),
        }
    }
}

fn collect<U: Unwinder, F: FnMut(u64) -> Result<u64, ()>>(
    mut frames: UnwindIterator<'_, '_, '_, U, F>,
    mapped: &[(u64, u64)],
    most: usize,
) -> Vec<u64> {
    let mut found = Vec::new();
    while found.len() < most {
        let Ok(Some(frame)) = frames.next() else {
            break;
        };
        let address = match frame {
            FrameAddress::InstructionPointer(address) => address,
            FrameAddress::ReturnAddress(address) => address.get() - 1,
        };
        // Without tables framehop follows frame pointers, which may be anything.
        let next = mapped.partition_point(|(start, _)| *start <= address);
        let mapping = next.checked_sub(1).map(|at| mapped[at]);
        let is_mapped = mapping.is_some_and(|(_, end)| address < end);
        if !is_mapped && !found.is_empty() {
            break;
        }
        found.push(address);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_index_that_leads_out_of_its_table_is_not_used() {
        let index = |count: u32, entry: u32| {
            // Version 1, all numbers are 4 bytes (DW_EH_PE_udata4), where .eh_frame is, entries.
            let mut bytes = vec![1, 3, 3, 3];
            for number in [0x1000, count, 0x10, entry] {
                bytes.extend(number.to_le_bytes());
            }
            is_index(&bytes, &BaseAddresses::default())
        };
        assert!(index(1, 0x1000));
        assert!(!index(1, 0xfff));
        assert!(!index(2, 0x1000));
        assert!(!index(u32::MAX, 0x1000));
        assert!(!is_index(&[], &BaseAddresses::default()));
    }

    #[test]
    fn registers_are_those_of_perfs_mask() {
        // What perf asks for: no segment registers but CS and SS.
        let mask = 0x00ff_0fff;
        let values: Vec<u64> = (0..20).map(|n| n * 0x10).collect();
        let Some(UserRegisters::X86_64 { ip, all }) = UserRegisters::x86_64(mask, &values) else {
            panic!("they are there");
        };
        // AX, BX, CX, DX, SI, DI, BP, SP, IP, FLAGS, CS, SS, R8.
        assert_eq!(
            (ip, all[RSP], all[6], all[3], all[8]),
            (0x80, 0x70, 0x60, 0x10, 0xc0)
        );
        assert_eq!(UserRegisters::x86_64(mask & !(1 << 7), &values), None);
        let Some(UserRegisters::Aarch64 { pc, lr, sp, fp }) =
            UserRegisters::aarch64((1 << 33) - 1, &(0..33).collect::<Vec<u64>>())
        else {
            panic!("they are there");
        };
        assert_eq!((pc, lr, sp, fp), (32, 30, 31, 29));
    }

    #[test]
    fn frame_pointers_are_followed_on_aarch64_where_there_are_no_tables() {
        let mapping = CodeMapping {
            start: 0x40_0000,
            end: 0x41_0000,
            pgoff: 0,
            path: b"",
            build_id: None,
        };
        let mut unwinding = Unwinding::new(true, [(mapping, None)].into_iter());
        // Two frames: each has the next one's place and a return address, the second of them signed; then one that is
        // nowhere.
        let signed = 0x00ab_0000_0040_2000u64;
        let words = [0x1010, 0x40_1000, 0x1020, signed, 0x1030, 0x77_0000, 0, 0];
        let stack: Vec<u8> = words
            .iter()
            .flat_map(|word: &u64| word.to_le_bytes())
            .collect();
        let registers = UserRegisters::Aarch64 {
            pc: 0x40_0100,
            lr: 0x40_0999,
            sp: 0x1000,
            fp: 0x1000,
        };
        let found = unwinding.stack(&registers, &stack, 100);
        assert_eq!(found, [0x40_0100, 0x40_0fff, 0x40_1fff]);
        assert_eq!(unwinding.stack(&registers, &stack, 2).len(), 2);
        assert_eq!(unwinding.stack(&registers, &[], 100), [0x40_0100]);
    }
}
