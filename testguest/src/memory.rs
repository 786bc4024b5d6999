//! The guest's memory: the only unsafe code of this program.

use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Context, Result, ensure};
use kvm_bindings::kvm_userspace_memory_region;
use kvm_ioctls::VmFd;

use crate::layout::MEMORY_BYTES;

/// Bytes of a page, and of what KVM wants memory to be a multiple of.
const PAGE_BYTES: usize = 4096;

/// A page of memory. It is atomics, as the guest and user space use it at once.
#[derive(Debug)]
#[repr(C, align(4096))]
struct GuestPage([AtomicU32; PAGE_BYTES / 4]);

/// Memory of a guest, from its address 0.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Memory {
    /// It is never given back, so that no VM ever outlives it: a program has one.
    pages: &'static [GuestPage],
}

impl Memory {
    /// Makes memory full of zeros.
    pub(crate) fn new() -> Memory {
        let zeros = || GuestPage([const { AtomicU32::new(0) }; PAGE_BYTES / 4]);
        let pages: Vec<GuestPage> = (0..MEMORY_BYTES / PAGE_BYTES).map(|_| zeros()).collect();
        Memory {
            pages: pages.leak(),
        }
    }

    /// Gives it to a VM.
    pub(crate) fn give_to(&self, vm: &VmFd) -> Result<()> {
        let region = kvm_userspace_memory_region {
            slot: 0,
            flags: 0,
            guest_phys_addr: 0,
            memory_size: size_of_val(self.pages) as u64,
            userspace_addr: self.pages.as_ptr() as u64,
        };
        // SAFETY: the region is these pages as a whole, which are aligned as pages, stay where they are and are never
        // freed. The guest may write any of their words at any time, as another thread may: they are atomics, of which
        // every value is a good one.
        unsafe { vm.set_user_memory_region(region) }.context("KVM does not take the guest's memory")
    }

    /// Returns the 32 bits at an address.
    fn word(&self, address: u32) -> Result<&AtomicU32> {
        let at = address as usize;
        let page = self.pages.get(at / PAGE_BYTES);
        let word = page.and_then(|page| page.0.get(at % PAGE_BYTES / 4));
        ensure!(
            at.is_multiple_of(4),
            "no word of memory begins at {address:#x}"
        );
        word.with_context(|| format!("the guest has no memory at {address:#x}"))
    }

    /// Reads 32 bits.
    pub(crate) fn read(&self, address: u32) -> Result<u32> {
        Ok(self.word(address)?.load(Ordering::SeqCst))
    }

    /// Writes 32 bits.
    pub(crate) fn write(&self, address: u32, value: u32) -> Result<()> {
        self.word(address)?.store(value, Ordering::SeqCst);
        Ok(())
    }

    /// Writes code. The last word is filled up with zeros.
    pub(crate) fn write_code(&self, address: u32, code: &[u8]) -> Result<()> {
        for (word, at) in code.chunks(4).zip((address..).step_by(4)) {
            let mut bytes = [0; 4];
            for (byte, from) in bytes.iter_mut().zip(word) {
                *byte = *from;
            }
            self.write(at, u32::from_le_bytes(bytes))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let memory = Memory::new();
        memory
            .write_code(0x1000, &[1, 2, 3, 4, 5])
            .expect("it lies in memory");
        assert_eq!(memory.read(0x1000).expect("a word"), 0x0403_0201);
        assert_eq!(memory.read(0x1004).expect("a word"), 5);
        assert_eq!(memory.read(0x1008).expect("a word"), 0);
    }

    #[test]
    fn what_is_no_memory_is_refused() {
        let memory = Memory::new();
        let end = MEMORY_BYTES as u32;
        assert!(memory.read(end - 4).is_ok());
        for address in [end - 3, end, u32::MAX - 3, 2] {
            assert!(memory.read(address).is_err(), "{address:#x}");
        }
    }
}
