//! A device: a thread that a vCPU asks by an ioeventfd, and that answers by an interrupt.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use vmm_sys_util::eventfd::EventFd;

use crate::here::{now_ns, thread_name, tid};
use crate::machine::{AccessAnswer, Device, TestMachine};
use crate::plan::Operation;

/// What a device counted.
#[derive(Debug)]
pub(crate) struct DeviceOutcome {
    pub(crate) vcpu: u32,
    pub(crate) operation: Operation,
    pub(crate) tid: u32,
    pub(crate) name: String,
    pub(crate) answers: u64,
}

/// How often a device answered, for the vCPU that is to be held until it has.
#[derive(Debug, Default)]
pub(crate) struct AccessAnswers {
    pub(crate) count: AtomicU64,
    /// CLOCK_MONOTONIC, just before the last.
    pub(crate) last_ns: AtomicU64,
}

/// A device's thread, while it runs.
#[derive(Debug)]
pub(crate) struct DeviceThread {
    pub(crate) vcpu: u32,
    pub(crate) operation: Operation,
    /// What ends its waiting.
    asked: EventFd,
    pub(crate) answers: Arc<AccessAnswers>,
    thread: JoinHandle<Result<(u32, String)>>,
}

/// Starts a device: it waits for its vCPU to ask, and answers.
pub(crate) fn start_device(
    device: Device,
    machine: &Arc<TestMachine>,
    delay: Duration,
    name: String,
    stop: &Arc<AtomicBool>,
) -> Result<DeviceThread> {
    let asked = device.asked.try_clone().context("cannot copy an eventfd")?;
    let answers = Arc::new(AccessAnswers::default());
    let (vcpu, operation) = (device.vcpu, device.operation);
    let (machine, counted, stop) = (machine.clone(), answers.clone(), stop.clone());
    let serve = move || -> Result<(u32, String)> {
        let own = (tid(), thread_name()?);
        loop {
            device.asked.read().context("cannot read an ioeventfd")?;
            if stop.load(Ordering::SeqCst) {
                return Ok(own);
            }
            thread::sleep(delay);
            counted.last_ns.store(now_ns(), Ordering::SeqCst);
            match &device.answer {
                AccessAnswer::Irqfd(irqfd) => irqfd.write(1).context("cannot write an irqfd")?,
                AccessAnswer::Line(line) => machine
                    .vm
                    .set_irq_line(*line, true)
                    .context("KVM does not raise an interrupt line")?,
            }
            counted.count.fetch_add(1, Ordering::SeqCst);
        }
    };
    let thread = thread::Builder::new().name(name).spawn(serve);
    Ok(DeviceThread {
        vcpu,
        operation,
        asked,
        answers,
        thread: thread.context("cannot start a thread")?,
    })
}

/// Ends a device's thread and returns what it counted.
pub(crate) fn stop_device(device: DeviceThread) -> Result<DeviceOutcome> {
    device.asked.write(1).context("cannot write an eventfd")?;
    let ended = device.thread.join();
    let (tid, name) = ended.map_err(|_| anyhow!("a device's thread panicked"))??;
    Ok(DeviceOutcome {
        vcpu: device.vcpu,
        operation: device.operation,
        tid,
        name,
        answers: device.answers.count.load(Ordering::SeqCst),
    })
}
