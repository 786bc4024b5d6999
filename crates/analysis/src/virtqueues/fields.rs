//! Which events say something of virtqueues, and what their fields are.
//!
//! Tracepoints: `include/trace/events/{kvm,net,block,irq}.h`. Functions, recorded as kprobes under their own name, or
//! behind `kp_`: `drivers/virtio/virtio_ring.c` of the guest, `drivers/vhost/vhost.c`, `drivers/net/tun.c` and
//! `virt/kvm/eventfd.c` of the host, as Linux 6.1 to 6.18 have them.

use super::VirtqueueSource;
use event::{Body, Data, Event, EventType, FieldReader, FieldScalar, Kind};

/// A function of the guest's driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DriverCall {
    /// A buffer is added (`virtqueue_add_sgs`, `virtqueue_add_outbuf`, `virtqueue_add_inbuf` and their like).
    Adds,
    /// A used buffer is asked for (`virtqueue_get_buf`, `virtqueue_get_buf_ctx`).
    Takes,
    /// And was there, or not.
    Took,
    /// The device is notified, unless it asked not to be (`virtqueue_kick` and `virtqueue_notify` end there).
    Notifies,
}

/// What a block event's line or record says beside its device.
#[derive(Debug)]
pub(super) struct BlockFields {
    dev: FieldReader,
    bytes: FieldReader,
    sectors: FieldReader,
    kind: FieldReader,
}

/// What a request is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct BlockRequest {
    /// Major and minor number.
    pub(super) device: (u64, u64),
    pub(super) bytes: Option<u64>,
    pub(super) reads: bool,
    pub(super) writes: bool,
}

/// Fields of a probe of the guest's driver.
#[derive(Debug)]
pub(super) struct DriverFields {
    pub(super) call: DriverCall,
    device: FieldReader,
    queue: FieldReader,
    name: FieldReader,
    result: FieldReader,
}

/// Fields of a probe of a back end.
#[derive(Debug)]
pub(super) enum BackEndFields {
    /// So many buffers were used (`vhost_add_used_and_signal_n`): the queue, and how many by the fourth argument, or
    /// from Linux 6.18 on, where that is a pointer, by the fifth.
    Used {
        queue: FieldReader,
        count: Option<Box<[FieldReader; 2]>>,
    },
    /// An irqfd is signalled (`irqfd_wakeup`).
    Interrupts,
    /// A frame is taken from the guest (`tun_get_user`).
    Takes,
}

/// What a kind of events says.
#[derive(Debug)]
pub(super) enum QueueFields {
    /// A write of which KVM looks at the address alone (`kvm_fast_mmio`).
    FastMmio(FieldReader),
    /// A write of memory or of a port (`kvm_mmio`, `kvm_pio`).
    Write,
    /// A frame, by its interface: sent by it or received.
    Frame {
        sends: bool,
        interface: FieldReader,
        bytes: FieldReader,
        refused: FieldReader,
    },
    /// A request is issued or completed.
    Block {
        issues: bool,
        fields: BlockFields,
    },
    /// A device's interrupt is handled in the guest.
    Handler(FieldReader),
    Driver(DriverFields),
    BackEnd(BackEndFields),
}

/// Returns a reader of the first of these fields that the event has. A line's fields are not known before it comes.
fn first(ty: &EventType<'_>, in_record: &str, in_text: &str) -> FieldReader {
    let name = match ty.format {
        Some(_) => in_record,
        None => in_text,
    };
    FieldReader::of(ty, name)
}

/// Events of which one that did not come is none: each queue or device of a machine has them, or none has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum CountedAlike {
    /// Requests that are issued.
    Issues,
    /// Requests that are completed.
    Completions,
    /// Frames that an interface sends.
    Sends,
    /// Frames that an interface receives.
    Receives,
}

impl QueueFields {
    /// Returns what they count of every device of their machine.
    pub(super) fn counted_alike(&self) -> Option<CountedAlike> {
        match self {
            QueueFields::Block { issues: true, .. } => Some(CountedAlike::Issues),
            QueueFields::Block { issues: false, .. } => Some(CountedAlike::Completions),
            QueueFields::Frame { sends: true, .. } => Some(CountedAlike::Sends),
            QueueFields::Frame { sends: false, .. } => Some(CountedAlike::Receives),
            _ => None,
        }
    }

    /// Returns of which kind of rows they are.
    pub(super) fn source(&self) -> VirtqueueSource {
        match self {
            QueueFields::FastMmio(_) | QueueFields::Write => VirtqueueSource::Notifications,
            QueueFields::Frame { .. } => VirtqueueSource::Frames,
            QueueFields::Block { .. } => VirtqueueSource::Requests,
            QueueFields::Handler(_) | QueueFields::Driver(_) => VirtqueueSource::Driver,
            QueueFields::BackEnd(_) => VirtqueueSource::BackEnd,
        }
    }

    /// Returns what events of a kind say of virtqueues, if anything.
    pub(super) fn of(ty: &EventType<'_>) -> Option<QueueFields> {
        let frame = |sends| QueueFields::Frame {
            sends,
            interface: first(ty, "name", "dev"),
            bytes: FieldReader::of(ty, "len"),
            refused: FieldReader::of(ty, "rc"),
        };
        let block = |issues| QueueFields::Block {
            issues,
            fields: BlockFields {
                dev: FieldReader::of(ty, "dev"),
                bytes: FieldReader::of(ty, "bytes"),
                sectors: FieldReader::of(ty, "nr_sector"),
                kind: FieldReader::of(ty, "rwbs"),
            },
        };
        if matches!(ty.kind, Kind::KvmMmio | Kind::KvmPio) {
            return Some(QueueFields::Write);
        }
        match ty.name {
            "kvm_fast_mmio" => {
                return Some(QueueFields::FastMmio(first(ty, "gpa", "address")));
            }
            "net_dev_xmit" => return Some(frame(true)),
            "netif_receive_skb" => return Some(frame(false)),
            "block_rq_issue" => return Some(block(true)),
            "block_rq_complete" => return Some(block(false)),
            "irq_handler_entry" => {
                return Some(QueueFields::Handler(FieldReader::of(ty, "name")));
            }
            _ => {}
        }
        Self::of_function(ty, ty.name.strip_prefix("kp_").unwrap_or(ty.name))
    }

    fn of_function(ty: &EventType<'_>, function: &str) -> Option<QueueFields> {
        let driver = |call| {
            Some(QueueFields::Driver(DriverFields {
                call,
                device: FieldReader::of(ty, "virtio"),
                queue: FieldReader::of(ty, "queue"),
                name: FieldReader::of(ty, "name"),
                result: FieldReader::of(ty, "ret"),
            }))
        };
        let queue = FieldReader::of(ty, "vq");
        match function {
            "virtqueue_add_sgs"
            | "virtqueue_add_outbuf"
            | "virtqueue_add_inbuf"
            | "virtqueue_add_inbuf_ctx"
            | "virtqueue_add_outbuf_premapped"
            | "virtqueue_add_inbuf_premapped" => driver(DriverCall::Adds),
            "virtqueue_get_buf" | "virtqueue_get_buf_ctx" => driver(DriverCall::Takes),
            "virtqueue_get_buf__return" | "virtqueue_get_buf_ctx__return" => {
                driver(DriverCall::Took)
            }
            "virtqueue_notify" => driver(DriverCall::Notifies),
            "vhost_add_used_and_signal_n" => Some(QueueFields::BackEnd(BackEndFields::Used {
                queue,
                count: Some(Box::new(["n4", "n5"].map(|name| FieldReader::of(ty, name)))),
            })),
            "vhost_add_used_and_signal" => Some(QueueFields::BackEnd(BackEndFields::Used {
                queue,
                count: None,
            })),
            "irqfd_wakeup" => Some(QueueFields::BackEnd(BackEndFields::Interrupts)),
            "tun_get_user" => Some(QueueFields::BackEnd(BackEndFields::Takes)),
            _ => None,
        }
    }
}

/// Returns a field's text, without the quotes that a probe's has in a line.
pub(super) fn text(reader: &FieldReader, event: &Event<'_>, data: &Data) -> Option<String> {
    match reader.get(event, data)? {
        FieldScalar::Text(text) => {
            let text = text.trim_matches('"');
            (!text.is_empty()).then(|| text.to_owned())
        }
        FieldScalar::Number(_) => None,
    }
}

impl DriverFields {
    /// Returns device and queue, as far as the probe has them.
    pub(super) fn queue(&self, event: &Event<'_>, data: &Data) -> (String, Option<String>) {
        let device = self.device.number(event, data);
        let device = device.map_or_else(|| "virtio".to_owned(), |number| format!("virtio{number}"));
        let number = self.queue.number(event, data);
        let queue = text(&self.name, event, data).or(number.map(|number| number.to_string()));
        (device, queue)
    }

    /// Returns whether a buffer was there.
    pub(super) fn took(&self, event: &Event<'_>, data: &Data) -> bool {
        self.result.number(event, data).is_some_and(|ret| ret != 0)
    }
}

impl BlockFields {
    /// Reads a request.
    pub(super) fn read(&self, event: &Event<'_>, data: &Data) -> Option<BlockRequest> {
        // The kernel's own form of the number: 20 bits of it are the minor one (include/linux/kdev_t.h).
        let dev = self.dev.number(event, data)?;
        let device = (dev >> 20, dev & 0xf_ffff);
        let (kind, bytes, sectors) = match event.body {
            // "254,0 WS 4096 () 2048 + 8 [fio]"; of completions without the bytes.
            Body::Text { text, .. } => {
                let mut words = text.split_whitespace().skip(1);
                let kind = words.next().unwrap_or_default().to_owned();
                let bytes = words.next().and_then(|word| word.parse().ok());
                let sectors = words.skip_while(|word| *word != "+").nth(1);
                (kind, bytes, sectors.and_then(|word| word.parse().ok()))
            }
            _ => (
                text(&self.kind, event, data).unwrap_or_default(),
                self.bytes.number(event, data),
                self.sectors.number(event, data),
            ),
        };
        let sectors = sectors.and_then(|sectors: u64| sectors.checked_mul(512));
        Some(BlockRequest {
            device,
            bytes: bytes.or(sectors),
            // Z: of zones, whose second letter is no direction (blk_fill_rwbs, kernel/trace/blktrace.c).
            reads: kind.contains('R') && !kind.starts_with('Z'),
            writes: kind.contains('W') && !kind.starts_with('Z'),
        })
    }
}

/// Returns how many buffers a call of `vhost_add_used_and_signal_n` used: vhost gives back 64 at once, and a queue
/// has at most 32,768 (Virtio specification 1.2, section 2.7), so that more is no count but a pointer.
pub(super) fn used_at_once(fourth: Option<u64>, fifth: Option<u64>) -> Option<u64> {
    let count = |number: &u64| (1..=1 << 15).contains(number);
    fourth.filter(count).or(fifth.filter(count))
}

#[cfg(test)]
mod tests {
    use super::used_at_once;

    #[test]
    fn a_pointer_is_no_count() {
        assert_eq!(used_at_once(Some(7), Some(99)), Some(7));
        assert_eq!(used_at_once(Some(0xffff_8880_0000_1000), Some(3)), Some(3));
        assert_eq!(used_at_once(Some(0), Some(64)), Some(64));
        assert_eq!(used_at_once(None, None), None);
    }
}
