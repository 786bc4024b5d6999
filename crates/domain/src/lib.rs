/*!
libvirt's domain XML: read into a [`Domain`].

```
let text = "<domain type='kvm'>\n  <name>a</name>\n  <vcpu>2</vcpu>\n  <clock offset='utc'/>\n</domain>\n";
let (domain, notes) = domain::parse(text).unwrap();
assert_eq!((domain.name.as_str(), domain.vcpus), ("a", Some(2)));
assert!(notes.is_empty());
```
*/
#![forbid(unsafe_code)]

mod data;
mod devices;
mod error;
mod os;
mod read;
mod scan;
mod tree;

pub use data::{
    Cell, Console, Controller, CpuFeature, Disk, Domain, GuestOs, Hostdev, HugePages, Hyperv,
    Interface, MemoryBacking, NumaMemory, Sched, Timer, Topology,
};
pub use error::{Error, ErrorKind, Note, NoteKind};
pub use read::{decode, parse, parse_bytes};
