//! vCPUs leave their guests and enter them.

use event::{Event, Isa, KvmExit};

use super::{Machine, SpanSink};
use crate::track::{TrackPlace, VcpuTrack};
use crate::{Cause, GuestAccess};

impl Machine {
    /// A vCPU leaves its guest.
    #[inline]
    pub(super) fn exit<S: SpanSink>(&mut self, event: &Event<'_>, exit: &KvmExit, spans: &mut S) {
        let vcpu = self.kvm(event, exit.vcpu);
        let track = &mut self.tracks[vcpu];
        // Some kernels tell of an exit when they begin to handle it, and may lose the CPU before.
        let left_guest = std::mem::take(&mut track.left_guest);
        self.leaves_guest |= left_guest || exit.reason.isa == Isa::S390;
        // If an entry was missed, some of this time is the guest's.
        track.advance_if(track.place == TrackPlace::Guest, event.time);
        track.flush(vcpu, spans);
        track.place = TrackPlace::Kernel;
        track.cause = Cause {
            reason: Some(exit.reason),
            access: match self.no_accesses {
                true => None,
                false => exit.detail().and_then(GuestAccess::of_exit),
            },
        };
        track.exits += 1;
        track.vmm = false;
        track.halt_over = false;
    }

    /// Takes what the exit under way really was. Returns `false` where none is under way: then it is the exit.
    pub(super) fn inner(&mut self, event: &Event<'_>, exit: &KvmExit) -> bool {
        let vcpu = self.known_vcpu(event.tid);
        let track = vcpu.and_then(|vcpu| self.tracks.get_mut(vcpu));
        let under_way = |track: &&mut VcpuTrack| track.cause.reason.is_some();
        match track.filter(under_way) {
            Some(track) => {
                track.cause.reason = Some(exit.reason);
                true
            }
            None => false,
        }
    }

    /// A vCPU enters its guest.
    #[inline]
    pub(super) fn entry<S: SpanSink>(
        &mut self,
        event: &Event<'_>,
        number: Option<u32>,
        spans: &mut S,
    ) {
        let vcpu = self.kvm(event, number);
        let track = &mut self.tracks[vcpu];
        track.advance_if(track.place != TrackPlace::Guest, event.time);
        track.flush(vcpu, spans);
        track.place = TrackPlace::Guest;
        track.left_guest = false;
        track.cause = Cause::default();
    }
}
