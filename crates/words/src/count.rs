//! Counts with the noun that they count.

use std::fmt::Display;

/// Returns a count with its noun, which gets an `s` where there is not one: `1 exit`, `3 exits`.
pub fn plural<N: Display + PartialEq + From<u8>>(n: N, noun: &str) -> String {
    if n == N::from(1) {
        format!("1 {noun}")
    } else {
        format!("{n} {noun}s")
    }
}

/// Returns a count with a noun whose plural is its own: `1 row was`, `3 rows were`.
pub fn counted<N: Display + PartialEq + From<u8>>(n: N, one: &str, many: &str) -> String {
    if n == N::from(1) {
        format!("1 {one}")
    } else {
        format!("{n} {many}")
    }
}

/// Returns how often: `once`, `3 times`.
pub fn times(n: u64) -> String {
    match n {
        1 => "once".to_owned(),
        n => format!("{n} times"),
    }
}

/// Returns lines of a text from one to another: `line 3`, `lines 3-12`.
pub fn lines(first: u64, last: u64) -> String {
    match first == last {
        true => format!("line {first}"),
        false => format!("lines {first}-{last}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_not_many() {
        assert_eq!(plural(1_u64, "exit"), "1 exit");
        assert_eq!(plural(0_usize, "exit"), "0 exits");
        assert_eq!(counted(1_u32, "row was", "rows were"), "1 row was");
        assert_eq!(counted(2_u64, "row was", "rows were"), "2 rows were");
        assert_eq!((times(1), times(2)), ("once".into(), "2 times".into()));
    }
}
