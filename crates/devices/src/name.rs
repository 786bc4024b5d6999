//! What a lookup gives.

use std::borrow::Cow;
use std::fmt;

/// The name of an address: the device, and the register in it where that is known.
///
/// Its text is both, with a space between: `HPET main counter`, `acpi-tmr`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceName {
    /// The device, such as `HPET`, `serial COM1`, or what QEMU calls the region: `acpi-tmr`.
    pub device: Cow<'static, str>,
    /// The register: `main counter`. None if the device is one register, or its registers are not known.
    pub register: Option<Cow<'static, str>>,
}

impl DeviceName {
    /// A device of one register, or of unknown ones.
    pub(crate) fn device(device: impl Into<Cow<'static, str>>) -> DeviceName {
        DeviceName {
            device: device.into(),
            register: None,
        }
    }

    /// A register of a device.
    pub(crate) fn register(
        device: impl Into<Cow<'static, str>>,
        register: impl Into<Cow<'static, str>>,
    ) -> DeviceName {
        DeviceName {
            device: device.into(),
            register: Some(register.into()),
        }
    }
}

impl fmt::Display for DeviceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.register {
            Some(register) => write!(f, "{} {register}", self.device),
            None => f.write_str(&self.device),
        }
    }
}
