//! What each process has mapped, as perf knows it from the recording alone.
//!
//! Source: `tools/perf/util/{map,maps,machine,dso}.c` of kernel 6.1, and what perf 6.1 prints of recordings
//! made to ask it. The rules are perf's, strange ones included, because its output is what people compare with.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::files::{FileId, FileRegion, Files};
use event::index_of;

/// Mappings kept of one process: `vm.max_map_count` allows no more (its default is 65530).
pub(crate) const MAX_MAPS: usize = 1 << 16;
/// Mappings kept of all processes together.
const MAX_ALL_MAPS: usize = 1 << 20;
/// Mappings that may be copied for new processes before the recording must have earned more by new records.
const COPIES: u64 = 1 << 20;
/// How many copied mappings each mapping record earns.
const COPIES_EARNED: u64 = 64;

/// One mapping of a process; its first address is its key.
#[derive(Debug, Clone, Copy)]
struct SpaceMap {
    /// First address behind it.
    end: u64,
    /// What is added to an address (and wraps) to print it: perf prints places in files where it can.
    shift: u64,
    file: FileId,
}

type Maps = BTreeMap<u64, SpaceMap>;

/// The mappings of one process, by number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SpaceId(u32);

#[derive(Debug)]
struct AddressMaps {
    /// Shared with the processes that inherited them until one of both changes its own.
    maps: Arc<Maps>,
    /// Threads that have it; 0 when the place is free.
    users: u32,
    /// Says which of all its states this is; no other space has the same.
    version: u64,
}

/// The mappings of all processes.
#[derive(Debug)]
pub(crate) struct Spaces {
    spaces: Vec<AddressMaps>,
    /// What nobody has mapped anything in: most threads of a text are in such a space of their own.
    empty: Arc<Maps>,
    free: Vec<u32>,
    /// Mappings in all spaces, shared ones once.
    live: usize,
    copies: u64,
    versions: u64,
}

impl Spaces {
    pub(crate) fn new() -> Spaces {
        Spaces {
            spaces: Vec::new(),
            empty: Arc::default(),
            free: Vec::new(),
            live: 0,
            copies: COPIES,
            versions: 0,
        }
    }

    /// Makes an empty space, with one user.
    pub(crate) fn add(&mut self) -> SpaceId {
        self.versions += 1;
        let space = AddressMaps {
            maps: Arc::clone(&self.empty),
            users: 1,
            version: self.versions,
        };
        match self.free.pop() {
            Some(at) => {
                self.spaces[index_of(at)] = space;
                SpaceId(at)
            }
            None => {
                // There are no more than threads.
                let at = u32::try_from(self.spaces.len()).unwrap_or(u32::MAX);
                self.spaces.push(space);
                SpaceId(at)
            }
        }
    }

    /// Adds a user.
    pub(crate) fn retain(&mut self, id: SpaceId) {
        if let Some(space) = self.spaces.get_mut(index_of(id.0)) {
            space.users = space.users.saturating_add(1);
        }
    }

    /// Takes a user away; the mappings go with the last one.
    pub(crate) fn release(&mut self, id: SpaceId) {
        let Some(space) = self.spaces.get_mut(index_of(id.0)) else {
            return;
        };
        space.users = space.users.saturating_sub(1);
        if space.users > 0 {
            return;
        }
        let maps = std::mem::replace(&mut space.maps, Arc::clone(&self.empty));
        if Arc::strong_count(&maps) == 1 {
            self.live = self.live.saturating_sub(maps.len());
        }
        self.free.push(id.0);
    }

    /// Returns whether one user alone has it, who has mapped nothing.
    pub(crate) fn is_idle(&self, id: SpaceId) -> bool {
        let space = self.spaces.get(index_of(id.0));
        space.is_none_or(|space| space.users < 2 && space.maps.is_empty())
    }

    /// Gives a new process the mappings of the one that made it.
    pub(crate) fn inherit(&mut self, child: SpaceId, parent: SpaceId) {
        let Some(maps) = self
            .spaces
            .get(index_of(parent.0))
            .map(|p| Arc::clone(&p.maps))
        else {
            return;
        };
        self.versions += 1;
        if let Some(child) = self.spaces.get_mut(index_of(child.0))
            && child.maps.is_empty()
        {
            child.maps = maps;
            child.version = self.versions;
        }
    }

    /// Maps addresses, instead of what was mapped there before.
    pub(crate) fn map(&mut self, id: SpaceId, start: u64, len: u64, shift: u64, file: FileId) {
        self.copies = self.copies.saturating_add(COPIES_EARNED);
        let Some(space) = self.spaces.get_mut(index_of(id.0)) else {
            return;
        };
        let end = start.saturating_add(len);
        if start >= end || self.live >= MAX_ALL_MAPS || space.maps.len() >= MAX_MAPS {
            return;
        }
        if Arc::get_mut(&mut space.maps).is_none() {
            let count = space.maps.len();
            // Crafted recordings could have one record copy thousands of mappings, over and over.
            let Some(left) = self.copies.checked_sub(count as u64) else {
                return;
            };
            self.copies = left;
            self.live += count;
        }
        self.versions += 1;
        space.version = self.versions;
        let maps = Arc::make_mut(&mut space.maps);
        let before = maps.len();
        cut_out(maps, start, end);
        maps.insert(start, SpaceMap { end, shift, file });
        self.live = (self.live + maps.len()).saturating_sub(before);
    }

    /// Returns what stands for the mappings of a process as they are now.
    pub(crate) fn version(&self, id: SpaceId) -> u64 {
        self.spaces
            .get(index_of(id.0))
            .map_or(0, |space| space.version)
    }

    /// Hands out all mappings of a process: first address, the one behind it, where in the file it begins, and the
    /// file.
    pub(crate) fn each(&self, id: SpaceId, mut each: impl FnMut(u64, u64, u64, FileId)) {
        let space = self.spaces.get(index_of(id.0));
        for (start, map) in space.into_iter().flat_map(|space| space.maps.iter()) {
            each(*start, map.end, start.wrapping_add(map.shift), map.file);
        }
    }

    /// Returns the mapping that an address belongs to.
    pub(crate) fn find(&self, id: SpaceId, address: u64) -> Option<FileRegion> {
        let maps = &self.spaces.get(index_of(id.0))?.maps;
        let (&start, &SpaceMap { end, shift, file }) = maps.range(..=address).next_back()?;
        let region = FileRegion {
            start,
            end,
            shift,
            file,
            symbol: false,
        };
        region.has(address).then_some(region)
    }
}

/// Takes a range of addresses out of all mappings; what sticks out at its ends stays.
fn cut_out(maps: &mut Maps, start: u64, end: u64) {
    if let Some((_, first)) = maps.range_mut(..start).next_back()
        && first.end > start
    {
        let tail = *first;
        first.end = start;
        if tail.end > end {
            maps.insert(end, tail);
            return;
        }
    }
    while let Some((&at, &map)) = maps.range(start..end).next() {
        maps.remove(&at);
        if map.end > end {
            maps.insert(end, map);
            return;
        }
    }
}

/// One mapping, as its record gives it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MappingRecord<'p> {
    /// First address.
    pub start: u64,
    /// Bytes.
    pub len: u64,
    /// Offset in the file of the first byte.
    pub pgoff: u64,
    /// Whether code may run there.
    pub exec: bool,
    /// Whether it is of huge pages.
    pub huge: bool,
    /// Its build id, if it was recorded with it.
    pub build_id: Option<&'p [u8]>,
    /// The file.
    pub path: &'p [u8],
}

/// What a mapping of user space is to perf: its file name and what is added to addresses in it.
///
/// Memory without a file prints as the file that a just-in-time compiler would have left for perf, if code may run
/// there (`map__new`: `(anon || no_dso) && nsi && (prot & PROT_EXEC)`), and keeps its addresses; so do stacks and
/// heaps.
pub(crate) fn user_file(pid: i32, mapping: &MappingRecord<'_>, files: &mut Files) -> (FileId, u64) {
    let path = mapping.path;
    let anonymous = mapping.huge
        || path == b"//anon"
        || path.starts_with(b"/dev/zero")
        || path.starts_with(b"/anon_hugepage")
        || path.starts_with(b"[stack")
        || path.starts_with(b"/SYSV")
        || path == b"[heap]";
    if !anonymous {
        let pgoff = if path == b"[vdso]" { 0 } else { mapping.pgoff };
        let file = files.intern_version(path, mapping.build_id);
        return (file, pgoff.wrapping_sub(mapping.start));
    }
    let file = if !mapping.exec || pid == 0 {
        files.intern(path)
    } else {
        files.intern(format!("/tmp/perf-{pid}.map").as_bytes())
    };
    (file, 0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Mappings in the order they were made, of which the last one that has an address counts.
    #[derive(Debug, Clone, Default)]
    struct Plain(Vec<(u64, u64, u64, FileId)>);

    impl Plain {
        fn map(&mut self, start: u64, len: u64, shift: u64, file: FileId) {
            self.0.push((start, start.saturating_add(len), shift, file));
        }

        fn find(&self, address: u64) -> Option<(u64, FileId)> {
            let has = |m: &&(u64, u64, u64, FileId)| m.0 <= address && address < m.1;
            let map = self.0.iter().rev().find(has)?;
            Some((address.wrapping_add(map.2), map.3))
        }
    }

    proptest! {
        #[test]
        fn the_last_mapping_of_an_address_counts(
            steps in prop::collection::vec((0..40u64, 0..12u64, any::<u64>(), 0..4usize, any::<bool>()), 0..60),
        ) {
            let mut spaces = Spaces::new();
            let mut ids = vec![spaces.add()];
            let mut plain = vec![Plain::default()];
            for (file, &(start, len, shift, which, fork)) in (0u32..).zip(&steps) {
                let which = which % ids.len();
                if fork && ids.len() < 4 {
                    let child = spaces.add();
                    spaces.inherit(child, ids[which]);
                    ids.push(child);
                    plain.push(plain[which].clone());
                }
                spaces.map(ids[which], start, len, shift, FileId(file));
                plain[which].map(start, len, shift, FileId(file));
                for (&id, plain) in ids.iter().zip(&plain) {
                    for address in 0..64 {
                        let found = spaces.find(id, address);
                        let found = found.map(|r| (address.wrapping_add(r.shift), r.file));
                        prop_assert_eq!(found, plain.find(address));
                    }
                }
            }
            for id in ids {
                spaces.release(id);
            }
            prop_assert_eq!(spaces.live, 0);
        }
    }

    /// A process with so many mappings.
    fn process(maps: usize) -> (Spaces, SpaceId) {
        let mut spaces = Spaces::new();
        let id = spaces.add();
        for n in 0..maps as u64 {
            spaces.map(id, n * 0x2000, 0x1000, 0, FileId(1));
        }
        (spaces, id)
    }

    #[test]
    fn a_process_has_no_more_mappings_than_the_kernel_allows() {
        let (spaces, id) = process(2 * MAX_MAPS);
        assert_eq!(spaces.live, MAX_MAPS);
        assert!(spaces.find(id, 0x2000).is_some());
        assert_eq!(spaces.find(id, MAX_MAPS as u64 * 0x2000), None);
    }

    #[test]
    fn copies_for_new_processes_come_to_an_end() {
        let (mut spaces, id) = process(MAX_MAPS - 1);
        // Its children share them: a change of each would be a copy of all, and those have to be earned.
        spaces.copies = 2 * MAX_MAPS as u64;
        let mut children = Vec::new();
        for _ in 0..10 {
            let child = spaces.add();
            spaces.inherit(child, id);
            spaces.map(child, 0x1000, 0x100, 0, FileId(2));
            assert!(spaces.find(child, 0x2000).is_some());
            children.push(child);
        }
        assert_eq!(spaces.live, 3 * MAX_MAPS - 1);
        // However much they earned, there is an end to it.
        spaces.copies = u64::MAX;
        for _ in 0..100 {
            let child = spaces.add();
            spaces.inherit(child, id);
            spaces.map(child, 0x1000, 0x100, 0, FileId(2));
            children.push(child);
        }
        assert!(spaces.live <= MAX_ALL_MAPS + MAX_MAPS);
        children.into_iter().for_each(|child| spaces.release(child));
        spaces.release(id);
        assert_eq!(spaces.live, 0);
        // A place that is free again is used again, and empty.
        assert_eq!(spaces.free.len(), spaces.spaces.len());
        let id = spaces.add();
        assert_eq!(spaces.find(id, 0x2000), None);
    }
}
