/*!
Probes of kernel functions and of programs, made for a recording and removed with it.

They are made in tracefs (`kprobe_events`, `uprobe_events`), so that they have formats like other events, in a group
that is named after the recorder's process. A recorder that is killed cannot remove its own: the next one removes those
whose process is gone.

Source: `Documentation/trace/kprobetrace.rst`, `uprobetracer.rst`.
*/

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::PathBuf;

use crate::opened::Missing;
use crate::plan::{PlannedEvent, ProbeKind};
use crate::tracefs::Tracefs;

/// What groups of probes begin with; the number of the recorder's process follows.
const GROUP: &str = "trapline_";
/// Bytes of an event's name that the kernel takes (`MAX_EVENT_NAME_LEN`), with its end.
const NAME: usize = 63;

/// What probes of a function tell besides, where nothing else was asked for. `$argN` takes Linux 4.20.
///
/// `irqfd_wakeup` (`virt/kvm/eventfd.c`) gets the entry of the irqfd in its eventfd's queue, which no other irqfd has:
/// one of a device's interrupts. The kernel of arm64 has no event for it.
///
/// Functions of `drivers/virtio/virtio_ring.c` get a queue (`struct virtqueue`, `include/linux/virtio.h`): behind its
/// list and its callback it has its name, its device, whose first member is its number, and its own number. This has
/// been so since before Linux 4.20, and takes no BTF.
///
/// `vhost_add_used_and_signal_n` (`drivers/vhost/vhost.c`) gets its queue and how many buffers; from Linux 6.18 on that
/// is the fifth argument.
const ARGUMENTS: [(&str, &str); 12] = [
    ("irqfd_wakeup", "irqfd=$arg1"),
    ("vhost_add_used_and_signal_n", "vq=$arg2 n4=$arg4 n5=$arg5"),
    ("vhost_add_used_and_signal", "vq=$arg2"),
    ("virtqueue_add_sgs", QUEUE),
    ("virtqueue_add_outbuf", QUEUE),
    ("virtqueue_add_inbuf", QUEUE),
    ("virtqueue_add_inbuf_ctx", QUEUE),
    ("virtqueue_add_outbuf_premapped", QUEUE),
    ("virtqueue_add_inbuf_premapped", QUEUE),
    ("virtqueue_notify", QUEUE),
    ("virtqueue_get_buf", QUEUE),
    ("virtqueue_get_buf_ctx", QUEUE),
];
/// Device, number and name of the queue that is a function's first argument.
const QUEUE: &str = "virtio=+0(+32($arg1)):u32 queue=+40($arg1):u32 name=+0(+24($arg1)):string";

/// Where a probe is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum List {
    Kernel,
    User,
}

impl List {
    fn file(self) -> &'static str {
        match self {
            List::Kernel => "kprobe_events",
            List::User => "uprobe_events",
        }
    }
}

/// Probes that were made. They are removed when this goes, which has to be after the events that use them.
#[derive(Debug)]
pub struct Probes {
    root: PathBuf,
    group: String,
    made: Vec<(List, String)>,
}

/// A probe, as it is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ProbeRequest {
    list: List,
    /// `p`, `r`, or these with a number of instances behind them.
    kind: String,
    name: String,
    /// What stands behind the name: place and arguments.
    rest: String,
    /// What it records besides if the kernel can.
    besides: Option<&'static str>,
}

impl ProbeRequest {
    /// Reads a probe as tracefs takes it: `p[:[GROUP/]NAME] PLACE [ARGUMENTS]`; a function's name alone is a probe of
    /// it.
    fn read(text: &str) -> Option<ProbeRequest> {
        let text = text.trim();
        let (head, rest) = text.split_once(char::is_whitespace).unwrap_or(("p", text));
        let (kind, named) = head.split_once(':').unwrap_or((head, ""));
        let known = matches!(kind.chars().next(), Some('p' | 'r'))
            && kind.chars().skip(1).all(|digit| digit.is_ascii_digit());
        let rest = rest.trim();
        let place = rest.split_whitespace().next()?;
        if !known || text.contains(['\n', '\0']) {
            return None;
        }
        let name = named.rsplit('/').next().unwrap_or_default();
        let name = if name.is_empty() { place } else { name };
        let list = match place.contains('/') {
            true => List::User,
            false => List::Kernel,
        };
        let besides = ARGUMENTS
            .iter()
            .find(|(function, _)| rest == *function && kind == "p");
        Some(ProbeRequest {
            list,
            kind: kind.to_owned(),
            name: identifier(name),
            rest: rest.to_owned(),
            besides: besides.map(|(_, argument)| *argument),
        })
    }
}

impl ProbeRequest {
    fn kind(&self) -> ProbeKind {
        match (self.list, self.kind.starts_with('r')) {
            (List::Kernel, false) => ProbeKind::Kernel,
            (List::Kernel, true) => ProbeKind::KernelReturn,
            (List::User, false) => ProbeKind::User,
            (List::User, true) => ProbeKind::UserReturn,
        }
    }
}

/// Returns a name that the kernel takes for an event: of a place, its last part.
fn identifier(name: &str) -> String {
    let last = name.rsplit('/').next().unwrap_or_default();
    // In a module a function stands behind its module's name.
    let last = last.rsplit_once(':').map_or(last, |(_, function)| function);
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    let mut out: String = last.chars().map(plain).take(NAME).collect();
    if out.starts_with(|c: char| c.is_ascii_digit()) || out.is_empty() {
        out.insert(0, '_');
        out.truncate(NAME);
    }
    out
}

impl Probes {
    /// Makes probes; before that, removes those of recorders that are gone. Returns the events that they are, and those
    /// that cannot be made, with the reason.
    pub fn make(tracefs: &Tracefs, asked: &[String]) -> (Probes, Vec<PlannedEvent>, Vec<Missing>) {
        let root = tracefs.root().to_owned();
        let mut probes = Probes {
            group: format!("{GROUP}{}", std::process::id()),
            root,
            made: Vec::new(),
        };
        for list in [List::Kernel, List::User] {
            probes.remove_abandoned(list);
        }
        let mut wanted = Vec::new();
        let mut missing = Vec::new();
        for text in asked {
            let made = match ProbeRequest::read(text) {
                Some(probe) => probes.add(&probe).map(|()| (probe.kind(), probe.name)),
                None => Err(
                    "no probe as tracefs takes it: 'p[:NAME] FUNCTION' or 'p[:NAME] /FILE:0xOFFSET'"
                        .to_owned(),
                ),
            };
            match made {
                Ok((kind, name)) => wanted.push(PlannedEvent {
                    probe: Some(kind),
                    ..PlannedEvent::all(&probes.group, &name)
                }),
                Err(why) => missing.push(Missing {
                    name: format!("probe {text}"),
                    why,
                }),
            }
        }
        (probes, wanted, missing)
    }

    /// Returns whether none was made.
    pub fn is_empty(&self) -> bool {
        self.made.is_empty()
    }

    fn open(&self, list: List) -> io::Result<File> {
        let path = self.root.join(list.file());
        OpenOptions::new().append(true).open(path)
    }

    fn add(&mut self, probe: &ProbeRequest) -> Result<(), String> {
        let ProbeRequest {
            kind, name, rest, ..
        } = probe;
        let write = |besides: &str| {
            let line = format!("{kind}:{}/{name} {rest}{besides}\n", self.group);
            self.open(probe.list)
                .and_then(|mut file| file.write_all(line.as_bytes()))
        };
        let mut written = match probe.besides {
            Some(argument) => write(&format!(" {argument}")),
            None => write(""),
        };
        if let (Err(error), Some(_)) = (&written, probe.besides)
            && error.kind() == io::ErrorKind::InvalidInput
        {
            written = write("");
        }
        written.map_err(|error| why(probe.list, &error))?;
        self.made.push((probe.list, probe.name.clone()));
        Ok(())
    }

    /// Removes the probes of recorders that are gone.
    fn remove_abandoned(&self, list: List) {
        let text = fs::read_to_string(self.root.join(list.file())).unwrap_or_default();
        for line in text.lines() {
            let named = line
                .split_whitespace()
                .next()
                .and_then(|head| head.split_once(':'));
            let Some((_, named)) = named else {
                continue;
            };
            let group = named
                .split('/')
                .next()
                .and_then(|group| group.strip_prefix(GROUP));
            let Some(pid) = group.and_then(|pid| pid.parse::<u32>().ok()) else {
                continue;
            };
            // The number may be another process's by now: then they stay until that is gone too.
            if !PathBuf::from(format!("/proc/{pid}")).exists() {
                self.remove(list, named);
            }
        }
    }

    fn remove(&self, list: List, named: &str) {
        // One that is still used, or gone already, is left as it is.
        let _ = self
            .open(list)
            .and_then(|mut file| file.write_all(format!("-:{named}\n").as_bytes()));
    }
}

impl Drop for Probes {
    fn drop(&mut self) {
        for (list, name) in &self.made {
            self.remove(*list, &format!("{}/{name}", self.group));
        }
    }
}

/// Says why a probe cannot be made.
fn why(list: List, error: &io::Error) -> String {
    match (error.kind(), list) {
        (io::ErrorKind::NotFound, List::Kernel) if error.raw_os_error() == Some(2) => {
            "this kernel has no such function that can be probed, its module is not loaded, or the kernel was built \
             without kprobes"
                .to_owned()
        }
        (io::ErrorKind::NotFound, _) => "the file is not there, or the kernel was built without uprobes".to_owned(),
        (io::ErrorKind::PermissionDenied, _) => "permission denied: probes need root".to_owned(),
        (io::ErrorKind::InvalidInput, _) => {
            "the kernel refuses it; 'error_log' in tracefs says at which place".to_owned()
        }
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probes_are_read_as_tracefs_takes_them() {
        let read =
            |text| ProbeRequest::read(text).map(|one| (one.list, one.kind, one.name, one.rest));
        let kernel = |kind: &str, name: &str, rest: &str| {
            Some((
                List::Kernel,
                kind.to_owned(),
                name.to_owned(),
                rest.to_owned(),
            ))
        };
        assert_eq!(
            read("irqfd_wakeup"),
            kernel("p", "irqfd_wakeup", "irqfd_wakeup")
        );
        assert_eq!(
            read("p tun:tun_get_user"),
            kernel("p", "tun_get_user", "tun:tun_get_user")
        );
        assert_eq!(
            read("r10:mine/back vhost_poll_queue ret=$retval"),
            kernel("r10", "back", "vhost_poll_queue ret=$retval")
        );
        let (list, _, name, rest) = read("p /usr/bin/qemu:0x1234 %di").expect("a probe");
        assert_eq!((list, name.as_str()), (List::User, "_0x1234"));
        assert_eq!(rest, "/usr/bin/qemu:0x1234 %di");
        assert_eq!(read("x:y z"), None);
        assert_eq!(read(""), None);
        assert_eq!(read("p:a b\n-:c"), None);
    }

    #[test]
    fn probes_of_recorders_that_are_gone_are_removed() {
        let folder = tempfile::tempdir().expect("a folder");
        let list = folder.path().join("kprobe_events");
        // No process has this number: it is beyond the kernel's greatest.
        let text = "p:trapline_4194305/irqfd_wakeup irqfd_wakeup\np:probe/other other\np:trapline_1/kept kept\n";
        fs::write(&list, text).expect("a file");
        let tracefs = Tracefs::at(folder.path());
        let asked = ["irqfd_inject".to_owned(), "irqfd_wakeup".to_owned()];
        let (probes, wanted, missing) = Probes::make(&tracefs, &asked);
        assert!(missing.is_empty(), "{missing:?}");
        let group = format!("trapline_{}", std::process::id());
        let all = ["irqfd_inject", "irqfd_wakeup"].map(|name| PlannedEvent {
            probe: Some(ProbeKind::Kernel),
            ..PlannedEvent::all(&group, name)
        });
        assert_eq!(wanted, all);
        let made = format!(
            "p:{group}/irqfd_inject irqfd_inject\np:{group}/irqfd_wakeup irqfd_wakeup irqfd=$arg1\n"
        );
        let removed = "-:trapline_4194305/irqfd_wakeup\n";
        let now = fs::read_to_string(&list).expect("a file");
        assert_eq!(now, format!("{text}{removed}{made}"));
        drop(probes);
        let now = fs::read_to_string(&list).expect("a file");
        let gone = format!("-:{group}/irqfd_inject\n-:{group}/irqfd_wakeup\n");
        assert!(now.ends_with(&gone), "{now}");
    }

    #[test]
    fn without_the_kernels_support_the_reason_is_said() {
        let folder = tempfile::tempdir().expect("a folder");
        let (_, wanted, missing) = Probes::make(&Tracefs::at(folder.path()), &["a".to_owned()]);
        assert!(wanted.is_empty());
        assert!(missing[0].why.contains("without kprobes"), "{missing:?}");
    }
}
