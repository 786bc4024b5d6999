//! Places in the programs' arrays, and what is there.

use std::borrow::{Borrow, BorrowMut};
use std::collections::BTreeSet;

use aya::maps::{Array, HashMap, MapData, MapError, Stack};
use aya::{Ebpf, Pod};

use crate::error::LiveError;
use crate::raw;
use crate::read;
use counts::LiveRow;

/// The maps in which vCPUs, other threads and rows are kept.
pub(crate) struct MapPlaces<B>(B);

fn wrong(error: MapError) -> LiveError {
    LiveError::of("reading the maps", &error, true)
}

impl<B: Borrow<Ebpf>> MapPlaces<B> {
    /// Returns those of loaded programs.
    pub(crate) fn of(bpf: B) -> MapPlaces<B> {
        MapPlaces(bpf)
    }

    fn map(&self, name: &'static str) -> Result<&aya::maps::Map, LiveError> {
        let map = self.0.borrow().map(name);
        map.ok_or_else(|| LiveError::Bpf(format!("the programs have no map {name}")))
    }

    fn array<V: Pod>(&self, name: &'static str) -> Result<Array<&MapData, V>, LiveError> {
        self.map(name)?.try_into().map_err(wrong)
    }

    fn slots(&self) -> Result<HashMap<&MapData, u32, u32>, LiveError> {
        self.map("slots")?.try_into().map_err(wrong)
    }

    /// Returns all threads that are followed, by their numbers.
    pub(crate) fn threads(&self) -> Result<Vec<(i32, raw::RawVcpu)>, LiveError> {
        let vcpus = self.array::<raw::RawVcpu>("vcpus")?;
        let slots = self.slots()?;
        let all = slots.iter().flatten().filter_map(|(tid, slot)| {
            let vcpu = whole(|| vcpus.get(&slot, 0).ok())?;
            // It may have been forgotten since the slot was read.
            (vcpu.tid == tid).then_some((tid.cast_signed(), vcpu))
        });
        Ok(all.collect())
    }

    /// Returns a vCPU's rows.
    pub(crate) fn rows(&self, vcpu: &raw::RawVcpu) -> Result<Vec<LiveRow>, LiveError> {
        let index = self.array::<raw::RawIndex>("indexes")?;
        let index = index.get(&vcpu.slot, 0).map_err(wrong)?;
        let rows = self.array::<raw::RawRow>("rows")?;
        let rows = index
            .places()
            .filter_map(|place| rows.get(&place, 0).ok())
            .filter(|row| row.key.tid == vcpu.tid);
        Ok(rows.map(|row| read::row(&row)).collect())
    }
}

impl<B: BorrowMut<Ebpf>> MapPlaces<B> {
    fn map_mut(&mut self, name: &'static str) -> Result<&mut aya::maps::Map, LiveError> {
        let map = self.0.borrow_mut().map_mut(name);
        map.ok_or_else(|| LiveError::Bpf(format!("the programs have no map {name}")))
    }

    fn stack(&mut self, name: &'static str) -> Result<Stack<&mut MapData, u32>, LiveError> {
        self.map_mut(name)?.try_into().map_err(wrong)
    }

    fn set<V: Pod>(&mut self, name: &'static str, place: u32, value: V) -> Result<(), LiveError> {
        let map = self.map_mut(name)?;
        let mut map: Array<&mut MapData, V> = map.try_into().map_err(wrong)?;
        map.set(place, value, 0).map_err(wrong)
    }

    fn slots_mut(&mut self) -> Result<HashMap<&mut MapData, u32, u32>, LiveError> {
        self.map_mut("slots")?.try_into().map_err(wrong)
    }

    /// Makes all places free, of maps that are new.
    pub(crate) fn fill(&mut self, vcpus: u32, rows: u32) -> Result<(), LiveError> {
        for (name, most, each) in [
            ("free_vcpus", vcpus, 1),
            ("free_rows", rows, raw::ROWS_AT_ONCE),
        ] {
            let mut stack = self.stack(name)?;
            for place in (0..most / each).rev() {
                stack.push(place * each, 0).map_err(wrong)?;
            }
        }
        Ok(())
    }

    /// Follows a thread, from nothing if it was followed before. Returns whether there was room.
    pub(crate) fn put(&mut self, mut vcpu: raw::RawVcpu) -> Result<bool, LiveError> {
        let had = self.slots()?.get(&vcpu.tid, 0).ok();
        let slot = match had {
            Some(slot) => slot,
            None => match self.stack("free_vcpus")?.pop(0) {
                Ok(slot) => slot,
                Err(_) => return Ok(false),
            },
        };
        vcpu.slot = slot;
        self.set("vcpus", slot, vcpu)?;
        if had.is_none() {
            let insert = self.slots_mut()?.insert(vcpu.tid, slot, 0);
            insert.map_err(wrong)?;
        }
        Ok(true)
    }

    /// Forgets a thread that has ended, and its rows. It may have gone by itself.
    pub(crate) fn free(&mut self, tid: i32) -> Result<(), LiveError> {
        let tid = tid.cast_unsigned();
        let Ok(slot) = self.slots()?.get(&tid, 0) else {
            return Ok(());
        };
        let index = self.array::<raw::RawIndex>("indexes")?;
        let index = index.get(&slot, 0).map_err(wrong)?;
        self.slots_mut()?.remove(&tid).map_err(wrong)?;
        self.set("vcpus", slot, raw::RawVcpu::seed(0, 0, -1, 0))?;
        self.set("indexes", slot, raw::RawIndex::EMPTY)?;
        let mut rows = self.stack("free_rows")?;
        let first = |place: u32| place - place % raw::ROWS_AT_ONCE;
        let taken: BTreeSet<u32> = index.places().map(first).collect();
        for place in taken {
            rows.push(place, 0).map_err(wrong)?;
        }
        self.stack("free_vcpus")?.push(slot, 0).map_err(wrong)
    }
}

/// Reads a vCPU again if it was changing while it was copied.
fn whole(read: impl Fn() -> Option<raw::RawVcpu>) -> Option<raw::RawVcpu> {
    const TRIES: usize = 8;
    let mut last = None;
    for _ in 0..TRIES {
        let vcpu = read()?;
        if vcpu.finished == vcpu.changes {
            return Some(vcpu);
        }
        last = Some(vcpu);
    }
    last
}
