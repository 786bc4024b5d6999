//! The end of the walk: what every vCPU was last seen doing.

use super::Machine;
use crate::retired::RetiredThreads;
use crate::span::SpanSink;
use crate::track::{SchedState, VcpuTrack};

impl Machine {
    /// Returns up to when what a vCPU was last seen doing is what it did: where the recording was cut off and holds its
    /// events CPU by CPU, up to the last event of the CPU that it ran on; one that had none may have gone on anywhere,
    /// so up to when every CPU's events are there.
    fn known_until(&self, track: &VcpuTrack, end: u64) -> u64 {
        let Some(from) = self.uneven_from.filter(|_| track.ended.is_none()) else {
            return end;
        };
        let cpu = usize::try_from(track.cpu)
            .ok()
            .filter(|_| track.sched == SchedState::Running);
        let last = cpu
            .and_then(|cpu| self.cpus.get(cpu))
            .map_or(0, |cpu| cpu.last);
        from.max(last).max(track.at).min(end)
    }

    /// Ends the walk: what every vCPU was last seen doing, it did until the last event, as far as that can be known.
    pub fn finish<S: SpanSink>(&mut self, spans: &mut S) {
        let numbers: Vec<u32> = self.tracks.iter().map(|(number, _)| number).collect();
        for vcpu in numbers {
            self.finish_vcpu(vcpu, spans);
        }
    }

    /// Ends the spans of vCPUs that are to become part of sums, as those of all are ended when the walk is: what they
    /// were last seen doing, they did until now. They come by the vCPUs' numbers.
    pub fn finish_retired<S: SpanSink>(&mut self, retired: &RetiredThreads, spans: &mut S) {
        let mut vcpus: Vec<u32> = retired.vcpus().collect();
        vcpus.sort_unstable();
        for vcpu in vcpus {
            self.finish_vcpu(vcpu, spans);
        }
    }

    fn finish_vcpu<S: SpanSink>(&mut self, vcpu: u32, spans: &mut S) {
        let Some(track) = self.tracks.get(vcpu) else {
            return;
        };
        // The end of a thread as the recorder has it may be later than the last event.
        let end = track.ended.unwrap_or(self.end).min(self.end);
        let known = self.known_until(track, end);
        if track.sched == SchedState::Runnable {
            self.close_wait(vcpu, known);
        } else {
            self.tracks[vcpu].advance(known);
        }
        if known < end {
            self.tracks[vcpu].gap(end);
        }
        self.tracks[vcpu].flush(vcpu, spans);
    }
}
