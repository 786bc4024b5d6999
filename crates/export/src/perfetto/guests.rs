//! What guests did, on a track below each vCPU.

use std::collections::BTreeMap;

use analysis::{GuestContext, GuestPart};
use model::RetiredThreads;
use render::spans::{guest_called, guest_what};

use super::packets::{Arg, PacketKind, PacketText, Packets, TrackEvent};
use super::tracks::Tracks;
use crate::known::VcpuName;
use crate::walk::Scene;

/// What the guest of a vCPU does, until it does something else.
#[derive(Debug)]
struct OpenSlice {
    doing: GuestContext,
    title: String,
    start: u64,
    end: u64,
}

/// The guest of a vCPU.
#[derive(Debug)]
struct GuestOfVcpu {
    track: u64,
    open: Option<OpenSlice>,
}

/// Slices of what guests did. They go on where the vCPU was out of its guest, so that they add up to what `vcpus` has.
#[derive(Debug, Default)]
pub(super) struct GuestSlices {
    /// By the number of the vCPU.
    vcpus: BTreeMap<u32, GuestOfVcpu>,
}

impl GuestSlices {
    /// Adds a part of a vCPU's span.
    pub(super) fn add(
        &mut self,
        vcpu: &VcpuName,
        part: &GuestPart,
        scene: &Scene<'_>,
        (tracks, packets): (&mut Tracks, &mut Packets),
    ) {
        let (start, end) = (part.span.start, part.span.end);
        let Some(tasks) = scene.guests else { return };
        if end <= start || !scene.known.guest_reported(vcpu.tid) {
            return;
        }
        let guest = self.vcpus.entry(part.span.vcpu).or_insert_with(|| {
            let parent = tracks.vcpu(vcpu, scene.known, packets).states;
            GuestOfVcpu {
                track: tracks.below(parent, "guest", packets),
                open: None,
            }
        });
        let same = |open: &&mut OpenSlice| open.end == start && open.doing == part.doing;
        if let Some(open) = guest.open.as_mut().filter(same) {
            open.end = end;
            return;
        }
        write(guest, packets);
        guest.open = Some(OpenSlice {
            doing: part.doing,
            title: guest_called(&tasks.who(vcpu.tid, part.doing)),
            start,
            end,
        });
    }

    /// Writes what is under way of vCPUs of which no more is kept, and forgets them.
    pub(super) fn retire(&mut self, retired: &RetiredThreads, packets: &mut Packets) {
        for (_, mut guest) in { &mut self.vcpus }.extract_if(.., |vcpu, _| retired.has_vcpu(*vcpu))
        {
            write(&mut guest, packets);
        }
    }

    /// Writes what is under way.
    pub(super) fn finish(&mut self, packets: &mut Packets) {
        for guest in self.vcpus.values_mut() {
            write(guest, packets);
        }
    }
}

/// Writes the slice that is under way.
fn write(guest: &mut GuestOfVcpu, packets: &mut Packets) {
    let Some(open) = guest.open.take() else {
        return;
    };
    let mut args = vec![("what", Arg::Name(PacketText::Ours(guest_what(open.doing))))];
    if let GuestContext::Task(tid) = open.doing {
        args.push(("tid", Arg::Int(i64::from(tid))));
    }
    packets.event(&TrackEvent {
        category: Some("guest"),
        name: Some(PacketText::Plain(&open.title)),
        args: &args,
        ..TrackEvent::new(open.start, guest.track, PacketKind::Begin)
    });
    packets.event(&TrackEvent::new(open.end, guest.track, PacketKind::End));
}
