//! `KVM_RUN` begins and ends.

use tracefmt::EventFormat;

use crate::define::{NamedCondition, TextForm, TypedKind, event};
use crate::record::{FieldLoad, low32};
use crate::text::{behind, decimal, number, word};

/// `kvm:kvm_userspace_exit`: `KVM_RUN` returns to the VMM (`include/trace/events/kvm.h`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KvmUserspaceExit {
    /// Why (`KVM_EXIT_*` in `include/uapi/linux/kvm.h`); `None` when `KVM_RUN` failed, as it does for a
    /// signal.
    pub reason: Option<u32>,
}

/// Where the fields are in a record.
#[derive(Debug, Clone, Copy)]
pub(crate) struct UserspaceExitPlaces {
    reason: FieldLoad,
    errno: Option<FieldLoad>,
}

impl TypedKind for KvmUserspaceExit {
    type Places = UserspaceExitPlaces;

    // Texts print names of reasons, which conditions compare as texts.
    const NAMED: &'static [NamedCondition<KvmUserspaceExit>] = &[];

    const TEXT: TextForm<KvmUserspaceExit> = TextForm::Whole(userspace_exit);

    fn bind(format: &EventFormat) -> Option<UserspaceExitPlaces> {
        let load = |name: &str| FieldLoad::of(format.field(name)?, format.abi.endian);
        Some(UserspaceExitPlaces {
            reason: load("reason")?,
            errno: load("errno"),
        })
    }

    #[inline]
    fn read(places: &UserspaceExitPlaces, record: &[u8]) -> Option<KvmUserspaceExit> {
        let errno = places.errno.and_then(|errno| errno.get(record));
        let failed = low32(errno.unwrap_or(0)).cast_signed() < 0;
        let reason = low32(places.reason.get(record)?);
        Some(KvmUserspaceExit {
            reason: (!failed).then_some(reason),
        })
    }
}

/// Reads `reason KVM_EXIT_IO (2)`, where nothing else stands before or behind it.
#[inline]
fn usual_reason(text: &[u8]) -> Option<u32> {
    let name = text.strip_prefix(b"reason KVM_EXIT_")?;
    let open = memchr::memchr(b'(', name)?;
    let (name, code) = name.split_at(open);
    let digits = code.strip_prefix(b"(")?.strip_suffix(b")")?;
    let plain = memchr::memchr(b'=', name).is_none();
    decimal(digits).filter(|_| plain).map(low32)
}

/// Reads `reason KVM_EXIT_IO (2)`; for a call that failed the kernel prints `restart` or `error` and the
/// error's number.
fn userspace_exit(text: &[u8]) -> Option<KvmUserspaceExit> {
    if let Some(reason) = usual_reason(text) {
        return Some(KvmUserspaceExit {
            reason: Some(reason),
        });
    }
    if let Some(errno) = behind(text, b"errno=") {
        let failed = errno.first() == Some(&b'-') || number(word(errno))? >= 1 << 31;
        let reason = low32(number(word(behind(text, b"reason=")?))?);
        return Some(KvmUserspaceExit {
            reason: (!failed).then_some(reason),
        });
    }
    let rest = behind(text, b"reason ")?;
    if matches!(word(rest), b"restart" | b"error") {
        return Some(KvmUserspaceExit { reason: None });
    }
    let code = behind(rest, b"(")?;
    let end = code.iter().take_while(|b| b.is_ascii_digit()).count();
    let digits = code.get(..end).unwrap_or_default();
    Some(KvmUserspaceExit {
        reason: Some(low32(decimal(digits)?)),
    })
}

event! {
    /// `kvm:kvm_fpu`: whether the guest's floating point state is loaded, as it is while `KVM_RUN` runs
    /// (`kvm_load_guest_fpu`, `arch/x86/kvm/x86.c`), or put away.
    KvmFpu at FpuPlaces {
        /// Whether it is loaded.
        load: bool = "load",
    }
    text: TextForm::Whole(fpu)
}

/// Reads `load` or `unload`.
fn fpu(text: &[u8]) -> Option<KvmFpu> {
    match word(text) {
        b"load" => Some(KvmFpu { load: true }),
        b"unload" => Some(KvmFpu { load: false }),
        _ => KvmFpu::from_fields(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_that_failed_has_no_reason() {
        let read = |text: &str| userspace_exit(text.as_bytes()).map(|exit| exit.reason);
        assert_eq!(read("reason KVM_EXIT_IO (2)"), Some(Some(2)));
        assert_eq!(read("reason restart (4)"), Some(None));
        assert_eq!(read("reason KVM_EXIT_IO (2) more"), Some(Some(2)));
        assert_eq!(read("reason KVM_EXIT_IO (2"), Some(Some(2)));
        assert_eq!(read("reason KVM_EXIT_errno=-4 (2)"), None);
        assert_eq!(read("reason KVM_EXIT_IO ()"), None);
    }
}
