//! Stacks that ftrace writes behind an event.

use crate::sink::{Body, Event};

/// Name of the events that ftrace writes behind others (`options/stacktrace`): the kernel's stack.
pub const KERNEL_STACK: &str = "kernel_stack";

/// Returns the addresses of a `kernel_stack` event, innermost first; none where the event is no stack in binary.
pub fn kernel_stack<'e>(event: &Event<'e>) -> impl Iterator<Item = u64> + use<'e> {
    let field = || {
        let Body::Raw(record) = event.body else {
            return None;
        };
        let format = event.ty.format.filter(|_| event.ty.name == KERNEL_STACK)?;
        let field = format.field("caller")?;
        Some((record.get(field.offset as usize..)?, format.abi.endian))
    };
    let found = field().into_iter();
    found.flat_map(|(bytes, endian)| {
        let all = bytes.chunks_exact(8);
        all.filter_map(move |bytes| endian.uint(bytes, 0, 8))
            .take_while(|address| *address != 0 && *address != u64::MAX)
    })
}
