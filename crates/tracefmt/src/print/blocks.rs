//! Joins neighbouring steps whose text always has the same length into one.
//!
//! Kernel formats like `info1 0x%016llx info2 0x%016llx intr_info 0x%08x`: all of it is one string with a
//! few digits put in, and costs one copy.

use super::program::{Action, Patch, PoolRange, PrintStep, Program};
use crate::cast::index;
use crate::index_of;

/// Texts longer than this are not joined further.
pub(super) const MAX_BLOCK: u32 = 512;

/// Joins what can be joined, and puts the jumps right.
pub(super) fn merge(program: &mut Program) {
    let mut steps = std::mem::take(&mut program.steps);
    let mut targets = vec![false; steps.len() + 1];
    for at in 0..steps.len() {
        if let Some(target) = target_mut(&mut steps[at].action) {
            targets[(index_of(*target)).min(steps.len())] = true;
        }
    }
    let mut moved = vec![0u32; steps.len() + 1];
    let mut at = 0;
    while at < steps.len() {
        moved[at] = index(program.steps.len());
        let mut end = at + 1;
        let mut length = fixed_length(&steps[at]).unwrap_or(MAX_BLOCK);
        while end < steps.len() && !targets[end] {
            let Some(more) = fixed_length(&steps[end]) else {
                break;
            };
            if length + more > MAX_BLOCK {
                break;
            }
            length += more;
            end += 1;
        }
        // A number alone is printed as quickly without.
        if end - at >= 2 {
            let block = block(program, &steps[at..end]);
            program.steps.push(block);
        } else {
            program.steps.push(steps[at]);
        }
        moved[at + 1..end].fill(index(program.steps.len()));
        at = end;
    }
    moved[steps.len()] = index(program.steps.len());
    for step in &mut program.steps {
        if let Some(target) = target_mut(&mut step.action) {
            *target = moved[(index_of(*target)).min(steps.len())];
        }
    }
    thread(&mut program.steps);
}

fn target_mut(action: &mut Action) -> Option<&mut u32> {
    match action {
        Action::JumpIfZero(_, target) | Action::JumpUnless(_, _, target) | Action::Jump(target) => {
            Some(target)
        }
        _ => None,
    }
}

/// Returns how long a step's text is, where that does not depend on the record.
fn fixed_length(step: &PrintStep) -> Option<u32> {
    let behind = match step.action {
        Action::Nothing => 0,
        Action::Literal(text) => text.len,
        Action::Hex(value, digits) if value.width() <= 4 * u32::from(digits) => u32::from(digits),
        _ => return None,
    };
    Some(u32::from(step.len) + behind)
}

/// Makes one step of several.
fn block(program: &mut Program, steps: &[PrintStep]) -> PrintStep {
    let start = program.pool.len();
    let first = index(program.patches.len());
    for step in steps {
        program.pool.extend_from_slice(step.text());
        match step.action {
            Action::Hex(value, digits) => {
                let at = index(program.pool.len() - start);
                program.patches.push(Patch { at, digits, value });
                program.pool.extend((0..digits).map(|_| b'0'));
            }
            Action::Literal(text) => {
                let from = index_of(text.at);
                program
                    .pool
                    .extend_from_within(from..from + index_of(text.len));
            }
            _ => {}
        }
    }
    let text = PoolRange {
        at: index(start),
        len: index(program.pool.len() - start),
    };
    PrintStep::new(
        &[],
        Action::Block(text, first, index(program.patches.len())),
    )
}

/// Lets a jump whose target asks the same question again go on to where that jump goes.
fn thread(steps: &mut [PrintStep]) {
    // From the back, so that a target is already right when a jump to it is looked at.
    for at in (0..steps.len()).rev() {
        let goal = match steps[at].action {
            Action::JumpUnless(bits, value, target) => match steps.get(index_of(target)) {
                Some(PrintStep {
                    len: 0,
                    action: Action::JumpUnless(b, v, next),
                    ..
                }) if *b == bits && *v == value => *next,
                Some(PrintStep {
                    len: 0,
                    action: Action::Jump(next),
                    ..
                }) => *next,
                _ => continue,
            },
            Action::JumpIfZero(_, target) | Action::Jump(target) => {
                match steps.get(index_of(target)) {
                    Some(PrintStep {
                        len: 0,
                        action: Action::Jump(next),
                        ..
                    }) => *next,
                    _ => continue,
                }
            }
            _ => continue,
        };
        if let Some(target) = target_mut(&mut steps[at].action) {
            *target = goal;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::operand::Operand;
    use super::*;

    #[test]
    fn numbers_of_fixed_width_are_joined_and_jumps_follow() {
        let step = |action| PrintStep::new(b"ab", action);
        let hex = |v| step(Action::Hex(Operand::Const(v).into(), 2));
        let mut program = Program {
            steps: vec![
                step(Action::JumpIfZero(Operand::Const(0).into(), 4)),
                hex(1),
                hex(0x1ff),
                hex(3),
                hex(4),
                hex(5),
                step(Action::Nothing),
            ],
            ..Program::default()
        };
        merge(&mut program);
        // 0x1ff does not fit in two digits; the jump goes to what was the fifth step.
        assert_eq!(program.steps.len(), 5);
        assert!(matches!(program.steps[0].action, Action::JumpIfZero(_, 4)));
        let Action::Block(text, 0, 2) = program.steps[4].action else {
            panic!()
        };
        assert_eq!(
            &program.pool[index_of(text.at)..][..text.len as usize],
            b"ab00ab00ab"
        );
        assert_eq!((program.patches[0].at, program.patches[1].at), (2, 6));
    }

    #[test]
    fn a_jump_to_the_same_question_goes_where_its_answer_goes() {
        let mut exprs = super::super::expr::Exprs::default();
        let load = super::super::load::NumberLoad {
            offset: 8,
            kind: super::super::load::LoadKind::U32,
        };
        let Operand::Bits(isa) = exprs.load(load) else {
            panic!()
        };
        let mut program = Program {
            steps: vec![
                PrintStep::new(b"", Action::JumpUnless(isa, 1, 2)),
                PrintStep::new(b"a", Action::Jump(4)),
                PrintStep::new(b"", Action::JumpUnless(isa, 1, 4)),
                PrintStep::new(b"b", Action::Unsigned(Operand::Const(1).into(), 1)),
                PrintStep::new(b"", Action::JumpUnless(isa, 2, 5)),
            ],
            exprs,
            ..Program::default()
        };
        merge(&mut program);
        assert!(matches!(
            program.steps[0].action,
            Action::JumpUnless(_, 1, 4)
        ));
        assert!(matches!(
            program.steps[4].action,
            Action::JumpUnless(_, 2, 5)
        ));
    }
}
