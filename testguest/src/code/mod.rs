//! The guest's code, assembled when it is needed. Both architectures are built everywhere, so that tests of either run
//! on any.

#[cfg(any(target_arch = "aarch64", test))]
pub(crate) mod aarch64;
#[cfg(any(target_arch = "x86_64", test))]
pub(crate) mod x86;
