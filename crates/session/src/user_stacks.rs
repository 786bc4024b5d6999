//! Stacks of user space, made of registers and of what was on the stack.

use std::collections::HashMap;

use binaries::{Binaries, CodeMapping, Unwinding, UserRegisters};
use event::UserStackBytes;
use symbols::{EachMapping, SpaceId, UserUnwinder};

use crate::user_functions::BuildIds;

/// Processes whose tables are kept at a time.
const MAX_PROCESSES: usize = 64;

/// Makes stacks with the unwind tables of the files that were recorded.
#[derive(Debug)]
pub(crate) struct UserStacks {
    binaries: Binaries,
    build_ids: BuildIds,
    aarch64: bool,
    /// By process, as it was mapped when its last stack was made.
    processes: HashMap<SpaceId, (u64, Unwinding)>,
}

impl UserStacks {
    pub(crate) fn new(binaries: Binaries, build_ids: BuildIds, aarch64: bool) -> UserStacks {
        UserStacks {
            binaries,
            build_ids,
            aarch64,
            processes: HashMap::new(),
        }
    }

    /// Makes ready what a process has mapped.
    fn ready(&mut self, (space, version): (SpaceId, u64), mappings: EachMapping<'_>) {
        let known = self.processes.get(&space);
        if known.is_some_and(|(known, _)| *known == version) {
            return;
        }
        if self.processes.len() >= MAX_PROCESSES {
            self.processes.clear();
        }
        let mut files: Vec<(Vec<u8>, Option<Vec<u8>>)> = Vec::new();
        let mut places: Vec<[u64; 3]> = Vec::new();
        mappings(&mut |mapping| {
            let id = mapping.build_id.or(self.build_ids.of(mapping.path));
            files.push((mapping.path.to_vec(), id.map(<[u8]>::to_vec)));
            places.push([mapping.start, mapping.end, mapping.pgoff]);
        });
        let mapped = files.iter().zip(places);
        let mapped = mapped.map(|((path, id), [start, end, pgoff])| CodeMapping {
            start,
            end,
            pgoff,
            path,
            build_id: id.as_deref(),
        });
        let mapped: Vec<CodeMapping<'_>> = mapped.collect();
        let unwinding = self.binaries.unwinding(self.aarch64, &mapped);
        self.processes.insert(space, (version, unwinding));
    }
}

impl UserUnwinder for UserStacks {
    fn unwind(
        &mut self,
        process: (SpaceId, u64),
        mappings: EachMapping<'_>,
        stack: &UserStackBytes<'_>,
        most: usize,
        addresses: &mut Vec<u64>,
    ) {
        self.ready(process, mappings);
        let values = stack.registers.chunks_exact(8);
        let values: Vec<u64> = values
            .filter_map(|bytes| bytes.first_chunk().map(|bytes| u64::from_le_bytes(*bytes)))
            .collect();
        let registers = match self.aarch64 {
            true => UserRegisters::aarch64(stack.mask, &values),
            false => UserRegisters::x86_64(stack.mask, &values),
        };
        let unwinding = self.processes.get_mut(&process.0);
        if let (Some(registers), Some((_, unwinding))) = (registers, unwinding) {
            addresses.extend(unwinding.stack(&registers, stack.stack, most));
        }
    }
}
