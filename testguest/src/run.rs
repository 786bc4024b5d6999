//! Runs a machine: a thread for each vCPU, one for each device, and what each of them counted.

use std::fs;
use std::io::{self, Read};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use kvm_ioctls::VcpuFd;

use crate::device::{DeviceOutcome, DeviceThread, start_device, stop_device};
use crate::here::{now_ns, say, tid};
use crate::layout::{HOLD, page};
use crate::machine::TestMachine;
use crate::plan::{Operation, Plan};
use crate::vcpu::{HeldInterrupt, RunnerThread, VcpuOutcome};

/// How a run is driven from outside.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings {
    /// Threads are named as QEMU names them.
    pub(crate) names_of_qemu: bool,
    /// It begins when a byte comes on standard input.
    pub(crate) wait: bool,
    /// How long it may take; no limit where there is none.
    pub(crate) timeout: Option<Duration>,
}

/// What was counted.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// CLOCK_MONOTONIC, before the first vCPU runs and after the last has stopped.
    pub(crate) started_ns: u64,
    pub(crate) ended_ns: u64,
    /// By number.
    pub(crate) vcpus: Vec<VcpuOutcome>,
    pub(crate) devices: Vec<DeviceOutcome>,
    /// Writes that the ioeventfd counted.
    pub(crate) ioeventfd: u64,
    pub(crate) held: Option<HeldInterrupt>,
}

/// Waits until a byte comes, so that a recorder can be attached first.
fn wait_for_byte(tids: &[u32]) -> Result<()> {
    let ready = serde_json::json!({ "ready": true, "pid": std::process::id(), "vcpu_tids": tids });
    say(&ready.to_string());
    let mut byte = [0];
    io::stdin()
        .read_exact(&mut byte)
        .context("standard input ended before a byte came, which --wait waits for")
}

/// What a vCPU's thread sends: its number once it is ready, and in the end what it counted.
enum RunMessage {
    Ready(u32, u32),
    Ended(Result<Box<VcpuOutcome>>),
}

/// Waits for what a vCPU's thread sends next.
fn receive(receiver: &Receiver<RunMessage>, until: Option<Instant>) -> Result<RunMessage> {
    let received = match until {
        None => receiver.recv().map_err(|_| RecvTimeoutError::Disconnected),
        Some(until) => receiver.recv_timeout(until.saturating_duration_since(Instant::now())),
    };
    received.map_err(|error| match error {
        RecvTimeoutError::Timeout => {
            anyhow!("the guest did not end in time: does an interrupt not arrive? --timeout is longer, or 0 for ever")
        }
        RecvTimeoutError::Disconnected => anyhow!("a vCPU's thread ended without a word"),
    })
}

/// Starts the vCPUs' threads, which wait at a barrier.
fn start_vcpus(
    machine: &Arc<TestMachine>,
    plan: &Arc<Plan>,
    fds: Vec<VcpuFd>,
    devices: &[DeviceThread],
    settings: &Settings,
    sender: &Sender<RunMessage>,
) -> Result<Arc<Barrier>> {
    let barrier = Arc::new(Barrier::new(fds.len() + 1));
    for (fd, vcpu) in fds.into_iter().zip(0u32..) {
        let message = devices
            .iter()
            .find(|device| device.vcpu == vcpu && device.operation == Operation::Irqfd);
        let thread = RunnerThread {
            vcpu,
            fd,
            machine: machine.clone(),
            plan: plan.clone(),
            answers: message.map(|device| device.answers.clone()),
        };
        let name = match settings.names_of_qemu {
            true => format!("CPU {vcpu}/KVM"),
            false => format!("vcpu-{vcpu}"),
        };
        let (sender, barrier) = (sender.clone(), barrier.clone());
        let run = move || {
            // Nobody receives once another thread has failed and the program ends.
            drop(sender.send(RunMessage::Ready(vcpu, tid())));
            barrier.wait();
            drop(sender.send(RunMessage::Ended(thread.run().map(Box::new))));
        };
        let started = thread::Builder::new().name(name).spawn(run);
        started.context("cannot start a vCPU's thread")?;
    }
    Ok(barrier)
}

/// Runs a plan to its end.
pub(crate) fn run(plan: &Arc<Plan>, settings: &Settings) -> Result<Outcome> {
    if settings.names_of_qemu {
        // The first thread has the process's name, which QEMU's cut to 15 bytes.
        fs::write("/proc/self/comm", "qemu-system-x86").context("cannot name the process")?;
    }
    let mut machine = TestMachine::new(plan)?;
    let fds = std::mem::take(&mut machine.vcpus);
    let devices = std::mem::take(&mut machine.devices);
    if plan.holds(0) && plan.hold_round() == 0 {
        machine.memory.write(page(0) + u32::from(HOLD), 1)?;
    }
    let machine = Arc::new(machine);
    let stop = Arc::new(AtomicBool::new(false));
    let devices = devices.into_iter().enumerate().map(|(number, device)| {
        let name = match settings.names_of_qemu {
            true => format!("IO iothread{}", number + 1),
            false => format!("device-{number}"),
        };
        start_device(device, &machine, plan.device_delay, name, &stop)
    });
    let devices = devices.collect::<Result<Vec<DeviceThread>>>()?;
    let (sender, receiver) = mpsc::channel();
    let barrier = start_vcpus(&machine, plan, fds, &devices, settings, &sender)?;
    let mut tids = vec![0; plan.vcpus as usize];
    for _ in 0..plan.vcpus {
        if let RunMessage::Ready(vcpu, tid) = receive(&receiver, None)?
            && let Some(slot) = tids.get_mut(vcpu as usize)
        {
            *slot = tid;
        }
    }
    if settings.wait {
        wait_for_byte(&tids)?;
    }
    let until = settings.timeout.map(|timeout| Instant::now() + timeout);
    let started_ns = now_ns();
    barrier.wait();
    let mut vcpus = Vec::new();
    for _ in 0..plan.vcpus {
        match receive(&receiver, until)? {
            RunMessage::Ended(outcome) => vcpus.push(*outcome?),
            RunMessage::Ready(vcpu, _) => bail!("vCPU {vcpu} was ready twice"),
        }
    }
    let ended_ns = now_ns();
    vcpus.sort_by_key(|outcome| outcome.vcpu);
    stop.store(true, Ordering::SeqCst);
    let devices = devices.into_iter().map(stop_device);
    let devices = devices.collect::<Result<Vec<DeviceOutcome>>>()?;
    Ok(Outcome {
        started_ns,
        ended_ns,
        held: vcpus.iter().find_map(|outcome| outcome.held),
        vcpus,
        devices,
        // Where nothing was written, there is nothing to read.
        ioeventfd: machine.ioeventfd.read().unwrap_or(0),
    })
}
