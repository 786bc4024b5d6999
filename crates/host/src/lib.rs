/*!
The facts of a host, read from its files: `/proc`, `/sys` and the configuration of its kernel in `/boot`.

Nothing is started, mounted, changed or asked over a network, and nothing that is read takes more than a look of the
kernel at its own state. The environment of processes is never read; what is or may be secret on command lines is
masked ([`facts::mask`]). What cannot be read is listed, with the reason.

The files may stand below any folder, so the tree of another host can be read, as a container has it mounted or as
`sosreport` copies it. Such a tree is taken for hostile: what is read is bounded, and links that lead out of it are not
followed.

```
// The tree of another host: here one that has nothing.
let nothing = std::env::temp_dir().join("trapline-no-such-tree");
let facts = host::collect(&nothing);
assert!(facts.threads.is_empty());
```
*/
#![forbid(unsafe_code)]
#![warn(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss
)]

mod cpus;
mod irqs;
mod kernel;
mod kvm;
mod processes;
mod tree;

use std::path::Path;

use facts::{Facts, Host};

use tree::HostTree;

/// Collects the facts of the host whose files stand below `root`: `/` is the running one.
pub fn collect(root: &Path) -> Facts {
    let mut tree = HostTree::new(root);
    let mut host = Host::default();
    kernel::read(&mut tree, &mut host);
    cpus::read(&mut tree, &mut host);
    kernel::read_isolation(&mut tree, &mut host);
    kvm::read(&mut tree, &mut host);
    host.irqs = irqs::read(&mut tree);
    let mut facts = Facts::default();
    host.masked += processes::read(&mut tree, &mut facts, host.online.as_ref());
    host.unreadable = tree.finish();
    facts.host = Some(host);
    facts
}
