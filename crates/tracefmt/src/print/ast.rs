//! The tree a `print fmt:` line is parsed into.
//!
//! Nodes live in one vector and refer to each other by index, so that however deep a hostile text nests
//! them, nothing recurses when the tree goes away.

use crate::cast::index;
use crate::index_of;

/// Index of a node.
pub(super) type Id = u32;

/// An operator with two operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BinOp {
    Mul,
    Div,
    Rem,
    Add,
    Sub,
    Shl,
    Shr,
    Lt,
    Gt,
    Le,
    Ge,
    Eq,
    Ne,
    And,
    Xor,
    Or,
    LogAnd,
    LogOr,
}

impl BinOp {
    /// Returns the operator that is written so.
    pub(super) fn from_text(text: &str) -> Option<BinOp> {
        Some(match text {
            "*" => BinOp::Mul,
            "/" => BinOp::Div,
            "%" => BinOp::Rem,
            "+" => BinOp::Add,
            "-" => BinOp::Sub,
            "<<" => BinOp::Shl,
            ">>" => BinOp::Shr,
            "<" => BinOp::Lt,
            ">" => BinOp::Gt,
            "<=" => BinOp::Le,
            ">=" => BinOp::Ge,
            "==" => BinOp::Eq,
            "!=" => BinOp::Ne,
            "&" => BinOp::And,
            "^" => BinOp::Xor,
            "|" => BinOp::Or,
            "&&" => BinOp::LogAnd,
            "||" => BinOp::LogOr,
            _ => return None,
        })
    }

    /// Returns how loosely it binds: the ranks of the C standard, the lower the tighter.
    pub(super) fn rank(self) -> i32 {
        match self {
            BinOp::Mul | BinOp::Div | BinOp::Rem => 6,
            BinOp::Add | BinOp::Sub => 7,
            BinOp::Shl | BinOp::Shr => 8,
            BinOp::Lt | BinOp::Gt | BinOp::Le | BinOp::Ge => 9,
            BinOp::Eq | BinOp::Ne => 10,
            BinOp::And => 11,
            BinOp::Xor => 12,
            BinOp::Or => 13,
            BinOp::LogAnd => 14,
            BinOp::LogOr => 15,
        }
    }
}

/// A name and the value it stands for in a table of `__print_flags` or `__print_symbolic`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ValueName {
    pub(super) value: i64,
    pub(super) name: String,
}

/// The arguments of `__print_hex_dump`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct HexDumpCall {
    pub(super) prefix: Id,
    /// Whether every row begins with its offset (`DUMP_PREFIX_OFFSET`).
    pub(super) offsets: bool,
    pub(super) row: Id,
    pub(super) group: Id,
    pub(super) data: Id,
    pub(super) len: Id,
    pub(super) ascii: Id,
}

/// One node of the tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum AstNode {
    /// The missing left operand of an operator with one.
    Null,
    /// A number or a name, as written.
    Atom(String),
    /// A string literal, escapes kept.
    Text(String),
    /// A character literal, escapes kept.
    Char(String),
    /// `REC->name`: the index of the field, where there is one of that name.
    Field(Option<usize>),
    /// `(type)item`.
    Cast { ctype: String, item: Id },
    /// `~`, `!`, `-` or `+` before its operand.
    Unary { op: u8, item: Id },
    /// Two operands. `rank` is what libtraceevent takes for the operator's rank in this place.
    Binary {
        op: BinOp,
        rank: i32,
        left: Id,
        right: Id,
    },
    /// `base[index]`.
    Index { base: Id, index: Id },
    /// `cond ? then : other`; without `then` for `cond ?: other`.
    Cond {
        cond: Id,
        then: Option<Id>,
        other: Id,
    },
    /// `__print_flags`.
    Flags {
        value: Id,
        delim: String,
        table: Vec<ValueName>,
    },
    /// `__print_symbolic`.
    Symbolic { value: Id, table: Vec<ValueName> },
    /// `__print_hex` (bytes apart) and `__print_hex_str` (bytes together).
    Hex { data: Id, len: Id, apart: bool },
    /// `__print_array`.
    Array { data: Id, count: Id, element: Id },
    /// `__print_hex_dump`: bytes in rows; the prefix comes first.
    HexDump(HexDumpCall),

    /// `__get_str`.
    Str(Option<usize>),
    /// `__get_bitmask`.
    Bitmask(Option<usize>),
    /// `__get_cpumask`.
    Cpumask(Option<usize>),
    /// `__get_dynamic_array` and `__get_sockaddr`.
    Dynamic(usize),
    /// `__get_dynamic_array_len`.
    DynamicLen(usize),
    /// A byte-swapping helper (`ntohs`, `be32_to_cpu`, `__builtin_bswap64`) of this many bytes.
    Swap { bytes: u8, item: Id },
    /// What could not be understood, with the operands that are shown in its place.
    Unknown(Vec<Id>),
}

/// Nodes and the roots of the conversions' arguments.
#[derive(Debug, Clone, Default)]
pub(super) struct FormatAst {
    pub(super) nodes: Vec<AstNode>,
}

impl FormatAst {
    pub(super) fn push(&mut self, node: AstNode) -> Id {
        self.nodes.push(node);
        index(self.nodes.len() - 1)
    }

    pub(super) fn node(&self, id: Id) -> &AstNode {
        self.nodes.get(index_of(id)).unwrap_or(&AstNode::Null)
    }

    /// Takes a node out, and leaves [`AstNode::Null`] in its place.
    pub(super) fn take(&mut self, id: Id) -> AstNode {
        self.nodes
            .get_mut(index_of(id))
            .map_or(AstNode::Null, |n| std::mem::replace(n, AstNode::Null))
    }

    pub(super) fn set(&mut self, id: Id, node: AstNode) {
        if let Some(slot) = self.nodes.get_mut(index_of(id)) {
            *slot = node;
        }
    }

    /// Returns the node below all casts.
    pub(super) fn uncast(&self, mut id: Id) -> Id {
        // Casts were made from the inside out: following them ends.
        for _ in 0..self.nodes.len() {
            match self.node(id) {
                AstNode::Cast { item, .. } => id = *item,
                _ => break,
            }
        }
        id
    }
}

/// Reads a C number as `strtoull(text, NULL, 0)` does: as far as it goes, 0 when it does not begin.
pub(super) fn number_prefix(text: &str) -> u64 {
    let bytes = text.trim_start().as_bytes();
    let (negative, bytes) = match bytes {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, bytes),
    };
    let (radix, digits) = match bytes {
        [b'0', b'x' | b'X', rest @ ..] if rest.first().is_some_and(u8::is_ascii_hexdigit) => {
            (16, rest)
        }
        [b'0', rest @ ..] => (8, rest),
        _ => (10, bytes),
    };
    let mut value = 0u64;
    let mut over = false;
    for &b in digits {
        let Some(digit) = (b as char).to_digit(radix) else {
            break;
        };
        let (v, o) = value.overflowing_mul(u64::from(radix));
        let (v, p) = v.overflowing_add(u64::from(digit));
        value = v;
        over |= o | p;
    }
    match (over, negative) {
        (true, _) => u64::MAX,
        (false, true) => value.wrapping_neg(),
        (false, false) => value,
    }
}

/// Enumerators that kernels of some versions leave unresolved in their formats, with their values.
///
/// Sources: `include/linux/interrupt.h`, `include/linux/hrtimer.h`; libtraceevent 1.7.1 knows the same.
const KNOWN_ENUMERATORS: [(&str, i64); 12] = [
    ("HI_SOFTIRQ", 0),
    ("TIMER_SOFTIRQ", 1),
    ("NET_TX_SOFTIRQ", 2),
    ("NET_RX_SOFTIRQ", 3),
    ("BLOCK_SOFTIRQ", 4),
    ("IRQ_POLL_SOFTIRQ", 5),
    ("TASKLET_SOFTIRQ", 6),
    ("SCHED_SOFTIRQ", 7),
    ("HRTIMER_SOFTIRQ", 8),
    ("RCU_SOFTIRQ", 9),
    ("HRTIMER_NORESTART", 0),
    ("HRTIMER_RESTART", 1),
];

/// Returns the value of an enumerator that is known without the kernel's help.
pub(super) fn known_enumerator(name: &str) -> Option<i64> {
    KNOWN_ENUMERATORS.iter().find(|e| e.0 == name).map(|e| e.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_far_as_they_go() {
        for (text, want) in [
            ("0", 0),
            ("12UL", 12),
            ("0x1fULL", 31),
            ("010", 8),
            ("08", 0),
            ("0xg", 0),
            ("-1", u64::MAX),
            ("99999999999999999999", u64::MAX),
            ("0xffffffffffffffff", u64::MAX),
            ("name", 0),
            ("", 0),
        ] {
            assert_eq!(number_prefix(text), want, "{text}");
        }
    }
}
