//! One line of the text.

/// What a line is.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum MtreeLine<'a> {
    /// Begins the tree of an address space, or names one more for the tree that follows.
    AddressSpace(&'a str),
    /// Begins the tree of a region that aliases point into.
    Target,
    /// Begins a flat view; its address spaces follow.
    FlatView,
    /// Names an address space that the flat view is of.
    FlatSpace(&'a str),
    /// A region.
    Region(MtreeRegion<'a>),
    /// Looks like a region and cannot be read.
    Damaged(&'static str),
    /// Anything else.
    Other,
}

/// A region's line.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct MtreeRegion<'a> {
    /// Where on the line it begins.
    pub column: usize,
    pub base: u64,
    /// The last address in it.
    pub last: u64,
    pub prio: i64,
    /// The region's name, or the alias's.
    pub name: &'a str,
    /// The region that an alias shows, and the offset in it at which the alias begins.
    pub alias: Option<(&'a str, u64)>,
    /// In flat views: how far into the region the range begins.
    pub skipped: u64,
    pub disabled: bool,
}

pub(super) fn parse(text: &str) -> MtreeLine<'_> {
    let text = text.trim_end();
    if let Some(at) = text.find(" (prio ") {
        return region(text, at);
    }
    if let Some((_, name)) = text.split_once("address-space: ") {
        return MtreeLine::AddressSpace(name.trim());
    }
    if text.contains("memory-region: ") {
        return MtreeLine::Target;
    }
    let bare = text.trim_start();
    if bare.starts_with("FlatView #") {
        return MtreeLine::FlatView;
    }
    // AS "memory", root: system
    if let Some(name) = bare
        .strip_prefix("AS \"")
        .and_then(|rest| rest.split('"').next())
    {
        return MtreeLine::FlatSpace(name);
    }
    match bare {
        "memory" | "I/O" => MtreeLine::AddressSpace(bare),
        "aliases" => MtreeLine::Target,
        _ => MtreeLine::Other,
    }
}

fn region(text: &str, prio_at: usize) -> MtreeLine<'_> {
    let (head, tail) = (text.get(..prio_at), text.get(prio_at + " (prio ".len()..));
    let (Some(head), Some(tail)) = (head, tail) else {
        return MtreeLine::Other;
    };
    let range = head
        .rsplit([' ', '\t', '>', '|', '"'])
        .next()
        .unwrap_or(head);
    let column = head.len().saturating_sub(range.len());
    let Some((base, last)) = range
        .split_once('-')
        .and_then(|(a, b)| Some((hex(a)?, hex(b)?)))
    else {
        return MtreeLine::Damaged("the range of addresses cannot be read");
    };
    if last < base {
        return MtreeLine::Damaged("the range of addresses ends before it begins");
    }
    // N, KIND): NAME
    let Some((prio, rest)) = tail.split_once(',') else {
        return MtreeLine::Damaged("the priority cannot be read");
    };
    let Ok(prio) = prio.trim().parse() else {
        return MtreeLine::Damaged("the priority cannot be read");
    };
    let Some((_, name)) = rest.split_once("):") else {
        return MtreeLine::Damaged("the region has no kind");
    };
    let mut name = name.trim();
    for owner in [" owner:{", " parent:{"] {
        name = name.split(owner).next().unwrap_or(name);
    }
    let mut disabled = false;
    // In any order: not mapped, and in flat views the accelerators that know the range.
    loop {
        name = name.trim_end();
        if let Some(rest) = name.strip_suffix("[disabled]") {
            disabled = true;
            name = rest;
        } else if let Some(rest) = name.strip_suffix(" KVM") {
            name = rest;
        } else {
            break;
        }
    }
    let mut region = MtreeRegion {
        column,
        base,
        last,
        prio,
        name,
        alias: None,
        skipped: 0,
        disabled,
    };
    if let Some(alias) = name.strip_prefix("alias ") {
        // NAME @TARGET FROM-TO
        let Some((name, target)) = alias
            .rsplit_once(" @")
            .or_else(|| Some(("", alias.strip_prefix('@')?)))
        else {
            return MtreeLine::Damaged("the alias has no target");
        };
        let from = target
            .rsplit_once(' ')
            .and_then(|(target, range)| Some((target, hex(range.split_once('-')?.0)?)));
        let Some((target, from)) = from else {
            return MtreeLine::Damaged("the range of the alias cannot be read");
        };
        region.name = name;
        region.alias = Some((target.trim(), from));
    } else if let Some((name, skipped)) = name
        .rsplit_once(" @")
        .and_then(|(name, at)| Some((name, hex(at)?)))
    {
        region.name = name.trim_end();
        region.skipped = skipped;
    }
    MtreeLine::Region(region)
}

fn hex(text: &str) -> Option<u64> {
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    u64::from_str_radix(text, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::{MtreeLine, MtreeRegion, parse};

    fn plain(name: &str) -> MtreeRegion<'_> {
        MtreeRegion {
            column: 2,
            base: 0x600,
            last: 0x67f,
            prio: 0,
            name,
            alias: None,
            skipped: 0,
            disabled: false,
        }
    }

    #[test]
    fn regions() {
        let line =
            |rest: &str| format!("  0000000000000600-000000000000067f (prio 0, i/o): {rest}");
        assert_eq!(parse(&line("ich9-pm")), MtreeLine::Region(plain("ich9-pm")));
        assert_eq!(
            parse(&line("ich9-pm\r")),
            MtreeLine::Region(plain("ich9-pm"))
        );
        assert_eq!(
            parse(&line("ich9-pm [disabled]")),
            MtreeLine::Region(MtreeRegion {
                disabled: true,
                ..plain("ich9-pm")
            })
        );
        assert_eq!(
            parse(&line(
                "ich9-pm owner:{dev path=/machine/unattached/device[25]}"
            )),
            MtreeLine::Region(plain("ich9-pm"))
        );
        assert_eq!(
            parse(&line("rtc @0000000000000001 KVM")),
            MtreeLine::Region(MtreeRegion {
                skipped: 1,
                ..plain("rtc")
            })
        );
        assert_eq!(
            parse(&line(
                "alias bus master @system 0000000000000010-ffffffffffffffff [disabled]"
            )),
            MtreeLine::Region(MtreeRegion {
                alias: Some(("system", 0x10)),
                disabled: true,
                ..plain("bus master")
            })
        );
        assert_eq!(
            parse("0000000000000600-000000000000067f (prio -1, RW): pci"),
            MtreeLine::Region(MtreeRegion {
                column: 0,
                prio: -1,
                ..plain("pci")
            })
        );
    }

    #[test]
    fn damaged_regions() {
        for text in [
            "  00000600-xyz (prio 0, i/o): a",
            "  00000600 (prio 0, i/o): a",
            "  00000600-00000500 (prio 0, i/o): a",
            "  00000600-0000067f (prio zero, i/o): a",
            "  00000600-0000067f (prio 0, i/o",
            "  00000600-0000067f (prio 0",
            "  00000600-0000067f (prio 0, i/o): alias a",
            "  00000600-0000067f (prio 0, i/o): alias a @b",
            "  00000600-0000067f (prio 0, i/o): alias a @b 12",
            "  00000000000000000600-0000067f (prio 99999999999999999999, i/o): a",
        ] {
            assert!(matches!(parse(text), MtreeLine::Damaged(_)), "{text}");
        }
    }

    #[test]
    fn headings() {
        assert_eq!(
            parse("address-space: I/O\r"),
            MtreeLine::AddressSpace("I/O")
        );
        assert_eq!(
            parse("(qemu) address-space: memory"),
            MtreeLine::AddressSpace("memory")
        );
        assert_eq!(parse("I/O"), MtreeLine::AddressSpace("I/O"));
        assert_eq!(parse("memory-region: pci"), MtreeLine::Target);
        assert_eq!(parse("aliases"), MtreeLine::Target);
        assert_eq!(parse("FlatView #2"), MtreeLine::FlatView);
        assert_eq!(
            parse(" AS \"cpu-memory-0\", root: system"),
            MtreeLine::FlatSpace("cpu-memory-0")
        );
        assert_eq!(parse(" Root memory region: (none)"), MtreeLine::Other);
        assert_eq!(parse("(qemu) info mtree"), MtreeLine::Other);
        assert_eq!(parse(""), MtreeLine::Other);
    }
}
