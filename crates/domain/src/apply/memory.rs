//! `<memoryBacking>` and `<numatune>`.

use cpuset::CpuSet;

use super::{ChangeOutcome, ChangeTarget};
use crate::element::Element;
use crate::read::scale;
use crate::tree::attr;

impl ChangeTarget<'_, '_> {
    pub(super) fn huge_pages(&self, size_kib: Option<u64>) -> ChangeOutcome {
        if size_kib.is_some_and(|size| !size.is_power_of_two()) {
            let what =
                "the size of huge pages is a power of two, such as 2048 or 1048576 KiB: not made";
            return self.refused(self.domain, what);
        }
        let page = |size: u64| Element::new("page").with("size", size).with("unit", "KiB");
        let path = ["memoryBacking", "hugepages"];
        let Some(hugepages) = self.all(&path).into_iter().next() else {
            let mut element = Element::new("hugepages");
            if let Some(size) = size_kib {
                element = element.holding(page(size));
            }
            return self.put(&["memoryBacking"], element);
        };
        let pages = self.all(&["memoryBacking", "hugepages", "page"]);
        let Some(size) = size_kib else {
            return self.holds(hugepages, "memory is of huge pages already");
        };
        let has = |node: &_| {
            let number = attr(*node, "size")?.trim().parse::<u64>().ok()?;
            let unit = scale(attr(*node, "unit").unwrap_or("KiB"))?;
            number.checked_mul(unit)
        };
        match pages[..] {
            [] => ChangeOutcome::Edits(vec![self.page.insert(hugepages, &page(size))]),
            [only] if has(&only) != size.checked_mul(1024) => {
                let size = size.to_string();
                let mut edits = vec![self.page.set(only, "size", &size)];
                if attr(only, "unit").is_some_and(|unit| unit != "KiB") {
                    edits.push(self.page.set(only, "unit", "KiB"));
                }
                ChangeOutcome::Edits(edits)
            }
            [only] => self.holds(
                only,
                format!("memory is of huge pages of {size} KiB already"),
            ),
            [..] => {
                let what =
                    "huge pages of several sizes are given, each for its NUMA nodes: not made";
                self.refused(hugepages, what)
            }
        }
    }

    /// An empty element in `<memoryBacking>`.
    pub(super) fn memory_flag(&self, name: &str) -> ChangeOutcome {
        match self.all(&["memoryBacking", name]).first() {
            Some(node) => self.holds(*node, format!("<{name}/> is there already")),
            None => self.put(&["memoryBacking"], Element::new(name)),
        }
    }

    pub(super) fn numa_memory(&self, mode: &str, nodeset: &CpuSet) -> ChangeOutcome {
        let known = ["strict", "preferred", "interleave", "restrictive"];
        if let Some(refused) = self.unknown("mode of memory", mode, &known) {
            return refused;
        }
        if nodeset.is_empty() {
            let what = "no NUMA node was given; expected one at least: not made";
            return self.refused(self.domain, what);
        }
        let Some(memory) = self.all(&["numatune", "memory"]).into_iter().next() else {
            let memory = Element::new("memory");
            let memory = memory.with("mode", mode).with("nodeset", nodeset);
            return self.put(&["numatune"], memory);
        };
        let nodes = attr(memory, "nodeset").and_then(|set| set.parse::<CpuSet>().ok());
        // Without a mode it is strict (virDomainNumatuneParseXML).
        let mode_holds = attr(memory, "mode").unwrap_or("strict") == mode;
        let mut edits = Vec::new();
        if !mode_holds {
            edits.push(self.page.set(memory, "mode", mode));
        }
        if nodes.as_ref() != Some(nodeset) {
            edits.push(self.page.set(memory, "nodeset", &nodeset.to_string()));
            // numad would decide, and libvirt's schema takes no nodes with that.
            if attr(memory, "placement") == Some("auto") {
                edits.extend(self.page.unset(memory, "placement"));
            }
        }
        if edits.is_empty() {
            return self.holds(
                memory,
                format!("memory is {mode} from nodes {nodeset} already"),
            );
        }
        ChangeOutcome::Edits(edits)
    }
}
