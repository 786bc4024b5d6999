//! What of a text is kept: ids that can be ids, names that are short enough, and so much of anything.

/// Most threads, vCPUs and VMs that are kept; large hosts have some ten thousand threads.
pub(crate) const MAX_THREADS: usize = 1 << 18;
pub(crate) const MAX_VCPUS: usize = 1 << 18;
pub(crate) const MAX_VMS: usize = 1 << 14;
/// Longest name in bytes; the kernel's have 15, those of VMs are what somebody typed.
const MAX_NAME: usize = 256;
/// Most words of a VMM's command line; libvirt's have some hundred.
pub(crate) const MAX_ARGS: usize = 4096;
/// Most threads of vhost workers of a VM: one for each of its devices that has one.
pub(crate) const MAX_VHOST: usize = 4096;
/// Highest thread id of any kernel: `PID_MAX_LIMIT` of `linux/threads.h`.
const MAX_TID: i64 = 4 << 20;

/// Returns a thread or process id, if the number can be one.
pub(crate) fn id(number: i64) -> Option<i32> {
    (1..=MAX_TID)
        .contains(&number)
        .then(|| i32::try_from(number).ok())?
}

/// Returns a name as it is kept: short enough, and not empty.
pub(crate) fn name(text: &str) -> Option<String> {
    let end = text.floor_char_boundary(MAX_NAME);
    let text = text[..end].trim();
    (!text.is_empty()).then(|| text.to_owned())
}

/// Fills a gap.
pub(crate) fn fill<T>(known: &mut Option<T>, reported: Option<T>) {
    if known.is_none() {
        *known = reported;
    }
}
