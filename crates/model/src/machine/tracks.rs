//! The vCPUs that are followed, by their numbers.

use std::ops::{Index, IndexMut};

use event::NONE;

use crate::by_slot::BySlot;
use crate::track::VcpuTrack;

/// vCPUs by number. A number is never used again.
#[derive(Debug, Clone)]
pub(super) struct VcpuTracks {
    list: BySlot<VcpuTrack>,
    next: u32,
    /// Stands for one that is not followed any more: whoever still has its number changes nobody else.
    past: Box<VcpuTrack>,
}

impl Default for VcpuTracks {
    fn default() -> VcpuTracks {
        VcpuTracks {
            list: BySlot::default(),
            next: 0,
            past: Box::new(VcpuTrack::new(NONE, u32::MAX, 0, NONE)),
        }
    }
}

impl VcpuTracks {
    /// Adds one, and returns its number.
    pub(super) fn push(&mut self, track: VcpuTrack) -> u32 {
        let number = self.next;
        self.next = number.saturating_add(1);
        self.list.entry(number, || track);
        number
    }

    #[inline]
    pub(super) fn get(&self, vcpu: u32) -> Option<&VcpuTrack> {
        self.list.get(vcpu)
    }

    #[inline]
    pub(super) fn get_mut(&mut self, vcpu: u32) -> Option<&mut VcpuTrack> {
        self.list.get_mut(vcpu)
    }

    pub(super) fn remove(&mut self, vcpu: u32) -> Option<VcpuTrack> {
        self.list.remove(vcpu)
    }

    /// Returns the number of the next one.
    pub(super) fn next_number(&self) -> u32 {
        self.next
    }

    /// Returns how many are followed.
    pub(super) fn len(&self) -> usize {
        self.list.len()
    }

    /// Returns those that are followed, with their numbers.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, &VcpuTrack)> {
        self.list.iter()
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (u32, &mut VcpuTrack)> {
        self.list.iter_mut()
    }
}

impl Index<u32> for VcpuTracks {
    type Output = VcpuTrack;

    #[inline]
    fn index(&self, vcpu: u32) -> &VcpuTrack {
        self.get(vcpu).unwrap_or(&self.past)
    }
}

impl IndexMut<u32> for VcpuTracks {
    #[inline]
    fn index_mut(&mut self, vcpu: u32) -> &mut VcpuTrack {
        match self.list.get_mut(vcpu) {
            Some(track) => track,
            None => &mut self.past,
        }
    }
}
