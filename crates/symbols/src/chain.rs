//! Call chains: addresses, and markers between them that tell whose the following ones are.
//!
//! Source: `PERF_CONTEXT_*` in `include/uapi/linux/perf_event.h`, and `add_callchain_ip` in `tools/perf/util/machine.c`
//! of kernel 6.1.

use event::{CallChain, USER_DEFERRED};

use crate::mode::CpuMode;

/// What follows is a hypervisor's below (`PERF_CONTEXT_HV`).
const HV: u64 = 0u64.wrapping_sub(32);
/// What follows is the kernel's (`PERF_CONTEXT_KERNEL`).
const KERNEL: u64 = 0u64.wrapping_sub(128);
/// What follows is user space's (`PERF_CONTEXT_USER`).
const USER: u64 = 0u64.wrapping_sub(512);
/// The lowest number that is no address (`PERF_CONTEXT_MAX`).
const LOWEST: u64 = 0u64.wrapping_sub(4095);

/// One function of a call chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChainFrame {
    /// Where it was.
    pub address: u64,
    /// Whose code that is.
    pub mode: CpuMode,
}

/// A marker that perf does not know: it takes the whole chain for damaged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnknownMarker(pub u64);

/// Returns the functions of a call chain, innermost first. Until a marker says otherwise, addresses are those of user
/// space, as perf takes them.
#[inline]
pub fn frames<'c>(
    chain: CallChain<'c>,
) -> impl Iterator<Item = Result<ChainFrame, UnknownMarker>> + use<'c> {
    let mut mode = CpuMode::User;
    // What follows comes later.
    let chain = chain.words().take_while(|word| *word != USER_DEFERRED);
    chain.filter_map(move |address| {
        if address < LOWEST {
            return Some(Ok(ChainFrame { address, mode }));
        }
        mode = match address {
            KERNEL => CpuMode::Kernel,
            USER => CpuMode::User,
            HV => CpuMode::Other,
            _ => return Some(Err(UnknownMarker(address))),
        };
        None
    })
}

/// Returns the addresses of a call chain before those of user space, without markers.
pub fn kernel_part<'c>(chain: CallChain<'c>) -> impl Iterator<Item = u64> + use<'c> {
    let kernel = chain
        .words()
        .take_while(|address| !matches!(*address, USER | USER_DEFERRED));
    kernel.filter(|address| *address < LOWEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markers_say_whose_the_addresses_are() {
        let bytes: Vec<u8> = [KERNEL, 0x10, 0x20, USER, 0x30, LOWEST]
            .iter()
            .flat_map(|word| word.to_le_bytes())
            .collect();
        let chain = CallChain::new(&bytes, false);
        let frame = |address, mode| Ok(ChainFrame { address, mode });
        let found: Vec<_> = frames(chain).collect();
        let expected = [
            frame(0x10, CpuMode::Kernel),
            frame(0x20, CpuMode::Kernel),
            frame(0x30, CpuMode::User),
            Err(UnknownMarker(LOWEST)),
        ];
        assert_eq!(found, expected);
        assert_eq!(kernel_part(chain).collect::<Vec<_>>(), [0x10, 0x20]);
    }

    #[test]
    fn a_chain_whose_rest_comes_later_keeps_what_it_has() {
        let bytes: Vec<u8> = [KERNEL, 0x10, 0x20, USER_DEFERRED, 77]
            .iter()
            .flat_map(|word| word.to_le_bytes())
            .collect();
        let chain = CallChain::new(&bytes, false);
        let found: Vec<_> = frames(chain).filter_map(Result::ok).collect();
        let addresses: Vec<u64> = found.iter().map(|frame| frame.address).collect();
        assert_eq!(addresses, [0x10, 0x20]);
        assert_eq!(frames(chain).count(), 2);
        assert_eq!(kernel_part(chain).count(), 2);
    }
}
