/*!
Definitions of guests, read into a [`Domain`]: libvirt's domain XML, which is also changed without touching the rest of
its text; QEMU's command line and Proxmox's `.conf` ([`definitions`] decides by content which it is).

[`parse`] reads what matters for where a guest's time goes; [`apply`] makes [`DomainChange`]s by editing the text
itself, so that comments, indentation and order stay; [`diff`] says what is different as `patch` takes it. There is no
I/O, and no document type or entity is ever read.

```
use domain::DomainChange;

let before = "<domain type='kvm'>\n  <name>a</name>\n  <clock offset='utc'/>\n</domain>\n";
let (domain, notes) = domain::parse(before).unwrap();
assert_eq!((domain.name.as_str(), notes.len()), ("a", 0));

let timer = DomainChange::Timer { name: "hypervclock".to_owned(), present: true };
let (after, _) = domain::apply(before, &[timer]).unwrap();
assert_eq!(
    domain::diff("a.xml", before, &after),
    "--- a/a.xml\n+++ b/a.xml\n@@ -1,4 +1,6 @@\n <domain type='kvm'>\n   <name>a</name>\n\
     -  <clock offset='utc'/>\n+  <clock offset='utc'>\n\
     +    <timer name='hypervclock' present='yes'/>\n+  </clock>\n </domain>\n"
);
```
*/
#![forbid(unsafe_code)]

mod apply;
mod change;
mod data;
mod definition;
mod devices;
mod diff;
mod differences;
mod element;
mod error;
mod forms;
mod machine;
mod order;
mod os;
mod page;
mod proxmox;
mod qemu;
mod read;
mod scan;
mod tree;
mod virsh;

pub use apply::apply;
pub use change::{DeviceChoice, DomainChange};
pub use data::{
    Controller, CpuFeature, DefinitionForm, Disk, Domain, DomainConsole, DomainTimer,
    GuestDefinition, GuestOs, Hostdev, HugePages, Hyperv, InputDevice, Interface, MemoryBacking,
    NumaCell, NumaMemory, ThreadScheduling, Topology,
};
pub use definition::definitions;
pub use diff::diff;
pub use differences::{DomainDifference, differences};
pub use error::{DomainError, DomainNote, ErrorKind, NoteKind};
pub use forms::FORMS;
pub use machine::machine_release;
pub use qemu::machine_of_args;
pub use read::{decode, parse, parse_bytes};
pub use virsh::virsh_lines;
