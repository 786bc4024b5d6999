//! Stacks for tests.

use crate::{FrameName, FrameOwner, StackTree, Stacks, Weight};

/// Returns stacks by the numbers of their frames, `f1` and so on, and by how many samples they have, each of which
/// weighs 10.
pub(crate) fn of(lists: &[(Vec<u32>, u64)]) -> Stacks {
    let mut tree = StackTree::new(1 << 20);
    for (list, samples) in lists {
        let weight = Weight {
            samples: *samples,
            amount: samples * 10,
        };
        tree.add(list.iter().copied(), weight);
    }
    let name = |frame: u32| FrameName {
        text: format!("f{frame}").into(),
        part: FrameOwner::User,
    };
    Stacks::of(&tree, name, |_| false)
}
