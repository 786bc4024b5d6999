//! What is said while a recording is made.

use std::io;

/// Takes what is said while a recording is made: names of guests and files are in it, as they are.
pub trait RecordingNews {
    /// Takes what was made: whole lines of text.
    ///
    /// # Errors
    ///
    /// It cannot be printed.
    fn made(&mut self, text: &str) -> io::Result<()>;

    /// Takes a remark that is no result: what is done now, or what went wrong without ending it. It has no line end.
    ///
    /// # Errors
    ///
    /// It cannot be printed.
    fn remark(&mut self, text: &str) -> io::Result<()>;

    /// Takes what is not recorded in a guest: its name, and why.
    ///
    /// # Errors
    ///
    /// It cannot be printed.
    fn missing_in_guest(&mut self, guest: &str, why: &str) -> io::Result<()>;
}
