//! Registers of Arm's interrupt controllers: Arm GIC architecture specification, version 2 (IHI 0048) and
//! version 3 (IHI 0069), chapters of memory-mapped registers; GICv2m frame: Arm Server Base System
//! Architecture, appendix of the GICv2m; kernel `include/linux/irqchip/arm-gic.h` and `arm-gic-v3.h`.

use std::borrow::Cow;

use crate::name::DeviceName;
use crate::regs::{self, Reg};

/// Registers that come in rows: offset, bytes of the row, bytes of one register, name.
struct RegisterRow(u64, u64, u64, &'static str);

/// The distributor: both versions agree where both have a register, except for the identification registers,
/// which are at the end of 4 KiB in version 2 and of 64 KiB in version 3.
const GICD: &[Reg] = &[
    Reg(0x0000, 4, "GICD_CTLR"),
    Reg(0x0004, 4, "GICD_TYPER"),
    Reg(0x0008, 4, "GICD_IIDR"),
    Reg(0x000c, 4, "GICD_TYPER2"),
    Reg(0x0010, 4, "GICD_STATUSR"),
    Reg(0x0040, 4, "GICD_SETSPI_NSR"),
    Reg(0x0048, 4, "GICD_CLRSPI_NSR"),
    Reg(0x0050, 4, "GICD_SETSPI_SR"),
    Reg(0x0058, 4, "GICD_CLRSPI_SR"),
    Reg(0x0f00, 4, "GICD_SGIR"),
    Reg(0x0fe8, 4, "GICD_PIDR2"),
    Reg(0xffe8, 4, "GICD_PIDR2"),
];

const GICD_ROWS: &[RegisterRow] = &[
    RegisterRow(0x0080, 0x80, 4, "GICD_IGROUPR"),
    RegisterRow(0x0100, 0x80, 4, "GICD_ISENABLER"),
    RegisterRow(0x0180, 0x80, 4, "GICD_ICENABLER"),
    RegisterRow(0x0200, 0x80, 4, "GICD_ISPENDR"),
    RegisterRow(0x0280, 0x80, 4, "GICD_ICPENDR"),
    RegisterRow(0x0300, 0x80, 4, "GICD_ISACTIVER"),
    RegisterRow(0x0380, 0x80, 4, "GICD_ICACTIVER"),
    RegisterRow(0x0400, 0x400, 4, "GICD_IPRIORITYR"),
    RegisterRow(0x0800, 0x400, 4, "GICD_ITARGETSR"),
    RegisterRow(0x0c00, 0x100, 4, "GICD_ICFGR"),
    RegisterRow(0x0d00, 0x80, 4, "GICD_IGRPMODR"),
    RegisterRow(0x0e00, 0x100, 4, "GICD_NSACR"),
    RegisterRow(0x0f10, 0x10, 4, "GICD_CPENDSGIR"),
    RegisterRow(0x0f20, 0x10, 4, "GICD_SPENDSGIR"),
    RegisterRow(0x6000, 0x2000, 8, "GICD_IROUTER"),
];

/// A redistributor's first frame.
const GICR: &[Reg] = &[
    Reg(0x0000, 4, "GICR_CTLR"),
    Reg(0x0004, 4, "GICR_IIDR"),
    Reg(0x0008, 8, "GICR_TYPER"),
    Reg(0x0010, 4, "GICR_STATUSR"),
    Reg(0x0014, 4, "GICR_WAKER"),
    Reg(0x0040, 8, "GICR_SETLPIR"),
    Reg(0x0048, 8, "GICR_CLRLPIR"),
    Reg(0x0070, 8, "GICR_PROPBASER"),
    Reg(0x0078, 8, "GICR_PENDBASER"),
    Reg(0x00a0, 8, "GICR_INVLPIR"),
    Reg(0x00b0, 8, "GICR_INVALLR"),
    Reg(0x00c0, 4, "GICR_SYNCR"),
    Reg(0xffe8, 4, "GICR_PIDR2"),
];

/// A redistributor's second frame: private interrupts.
const GICR_SGI: &[Reg] = &[
    Reg(0x0080, 4, "GICR_IGROUPR0"),
    Reg(0x0100, 4, "GICR_ISENABLER0"),
    Reg(0x0180, 4, "GICR_ICENABLER0"),
    Reg(0x0200, 4, "GICR_ISPENDR0"),
    Reg(0x0280, 4, "GICR_ICPENDR0"),
    Reg(0x0300, 4, "GICR_ISACTIVER0"),
    Reg(0x0380, 4, "GICR_ICACTIVER0"),
    Reg(0x0c00, 4, "GICR_ICFGR0"),
    Reg(0x0c04, 4, "GICR_ICFGR1"),
    Reg(0x0d00, 4, "GICR_IGRPMODR0"),
    Reg(0x0e00, 4, "GICR_NSACR"),
];

const GICR_SGI_ROWS: &[RegisterRow] = &[RegisterRow(0x0400, 0x20, 4, "GICR_IPRIORITYR")];

/// Version 2's CPU interface.
const GICC: &[Reg] = &[
    Reg(0x0000, 4, "GICC_CTLR"),
    Reg(0x0004, 4, "GICC_PMR"),
    Reg(0x0008, 4, "GICC_BPR"),
    Reg(0x000c, 4, "GICC_IAR"),
    Reg(0x0010, 4, "GICC_EOIR"),
    Reg(0x0014, 4, "GICC_RPR"),
    Reg(0x0018, 4, "GICC_HPPIR"),
    Reg(0x001c, 4, "GICC_ABPR"),
    Reg(0x0020, 4, "GICC_AIAR"),
    Reg(0x0024, 4, "GICC_AEOIR"),
    Reg(0x0028, 4, "GICC_AHPPIR"),
    Reg(0x00fc, 4, "GICC_IIDR"),
    Reg(0x1000, 4, "GICC_DIR"),
];

const GICC_ROWS: &[RegisterRow] = &[
    RegisterRow(0x00d0, 0x10, 4, "GICC_APR"),
    RegisterRow(0x00e0, 0x10, 4, "GICC_NSAPR"),
];

/// Where the ITS's second frame begins: the one with the register that devices write to.
pub(crate) const ITS_TRANSLATION: u64 = 0x1_0000;

const GITS: &[Reg] = &[
    Reg(0x0000, 4, "GITS_CTLR"),
    Reg(0x0004, 4, "GITS_IIDR"),
    Reg(0x0008, 8, "GITS_TYPER"),
    Reg(0x0080, 8, "GITS_CBASER"),
    Reg(0x0088, 8, "GITS_CWRITER"),
    Reg(0x0090, 8, "GITS_CREADR"),
    Reg(0xffe8, 4, "GITS_PIDR2"),
    Reg(0x1_0040, 4, "GITS_TRANSLATER"),
];

const GITS_ROWS: &[RegisterRow] = &[RegisterRow(0x0100, 0x40, 8, "GITS_BASER")];

const V2M: &[Reg] = &[
    Reg(0x0008, 4, "MSI_TYPER"),
    Reg(0x0040, 4, "MSI_SETSPI_NS"),
    Reg(0x0fcc, 4, "MSI_IIDR"),
];

fn register(regs: &'static [Reg], rows: &[RegisterRow], offset: u64) -> Cow<'static, str> {
    let row = rows
        .iter()
        .find_map(|RegisterRow(start, bytes, each, name)| {
            let into = offset.checked_sub(*start).filter(|into| into < bytes)?;
            let half = if *each == 8 && into % 8 >= 4 {
                " (high)"
            } else {
                ""
            };
            Some(format!("{name}{}{half}", into / each))
        });
    row.map_or_else(|| regs::at(regs, offset), Cow::Owned)
}

pub(crate) fn distributor(offset: u64) -> DeviceName {
    DeviceName::register("GIC distributor", register(GICD, GICD_ROWS, offset))
}

pub(crate) fn cpu_interface(offset: u64) -> DeviceName {
    DeviceName::register("GICv2 CPU interface", register(GICC, GICC_ROWS, offset))
}

pub(crate) fn v2m(offset: u64) -> DeviceName {
    DeviceName::register("GICv2m", register(V2M, &[], offset))
}

pub(crate) fn its(offset: u64) -> DeviceName {
    DeviceName::register("GICv3 ITS", register(GITS, GITS_ROWS, offset))
}

/// Two frames of 64 KiB for each CPU, one CPU after the other. A second region goes on where the first one
/// ends, which its name does not say, so only in the first one the CPU is named.
pub(crate) fn redistributor(region: &str, offset: u64) -> DeviceName {
    let frame = offset % 0x2_0000;
    let register = if frame < 0x1_0000 {
        register(GICR, &[], frame)
    } else {
        register(GICR_SGI, GICR_SGI_ROWS, frame - 0x1_0000)
    };
    if region.ends_with("[0]") {
        DeviceName::register(
            format!("GICv3 redistributor {}", offset / 0x2_0000),
            register,
        )
    } else {
        DeviceName::register("GICv3 redistributor", register)
    }
}

#[cfg(test)]
mod tests {
    use super::{cpu_interface, distributor, its, redistributor, v2m};

    #[test]
    fn distributor_registers() {
        let text = |offset| distributor(offset).to_string();
        assert_eq!(text(0xf00), "GIC distributor GICD_SGIR");
        assert_eq!(text(0x0), "GIC distributor GICD_CTLR");
        assert_eq!(text(0x108), "GIC distributor GICD_ISENABLER2");
        assert_eq!(text(0x184), "GIC distributor GICD_ICENABLER1");
        assert_eq!(text(0x420), "GIC distributor GICD_IPRIORITYR8");
        assert_eq!(text(0x6100), "GIC distributor GICD_IROUTER32");
        assert_eq!(text(0x6104), "GIC distributor GICD_IROUTER32 (high)");
        assert_eq!(text(0xffe8), "GIC distributor GICD_PIDR2");
        assert_eq!(text(0x9000), "GIC distributor +0x9000");
    }

    #[test]
    fn redistributor_frames() {
        let text = |offset| redistributor("gicv3_redist_region[0]", offset).to_string();
        assert_eq!(text(0x14), "GICv3 redistributor 0 GICR_WAKER");
        assert_eq!(text(0x3_0100), "GICv3 redistributor 1 GICR_ISENABLER0");
        assert_eq!(text(0x1_041c), "GICv3 redistributor 0 GICR_IPRIORITYR7");
        assert_eq!(
            redistributor("gicv3_redist_region[1]", 0x14).to_string(),
            "GICv3 redistributor GICR_WAKER"
        );
    }

    #[test]
    fn others() {
        assert_eq!(
            cpu_interface(0x0c).to_string(),
            "GICv2 CPU interface GICC_IAR"
        );
        assert_eq!(
            cpu_interface(0x1000).to_string(),
            "GICv2 CPU interface GICC_DIR"
        );
        assert_eq!(v2m(0x40).to_string(), "GICv2m MSI_SETSPI_NS");
        assert_eq!(its(0x88).to_string(), "GICv3 ITS GITS_CWRITER");
        assert_eq!(its(0x108).to_string(), "GICv3 ITS GITS_BASER1");
        assert_eq!(its(0x1_0040).to_string(), "GICv3 ITS GITS_TRANSLATER");
    }
}
