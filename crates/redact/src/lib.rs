/*!
A recording without what is private in it: fit for a public ticket.

[`Redactor`] decides what stands in place of a name, a path, an address. The containers hand it all that a recording
has and write what it returns; what they do not know they leave out (`perfdata`, [`perfdata::PrivacyMask`]).

- A name is replaced by the same one wherever it stands ([`Pseudonyms`]). Names that say what a thread is and nothing of
  who runs it stay ([`model::public_form`]).
- Addresses of the kernel are moved by one distance, so that what was at one place still is, and how far two are apart
  stays. Nobody can take from them where the kernel was. Addresses of user space stay.
- Of the kernel's symbols those stay that an address of the recording has; those of modules that not every kernel has
  are replaced.
- Of a tracepoint's record the numbers stay that its format has; texts are replaced, bytes become 0, and so does all
  that no field covers. What a guest wrote to its devices is 0 too: it may be the text of its console.
- Of a text nobody says where what is private stands: of its words those stay that are known to be public
  ([`TextRedactor`]).

Nothing here does I/O.
*/
#![forbid(unsafe_code)]
#![warn(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss
)]

mod printed;
mod pseudonyms;
mod records;
mod redactor;
mod remaining;
mod symbols;
mod texts;

#[cfg(test)]
mod tests;

pub use printed::TextRedactor;
pub use pseudonyms::Pseudonyms;
pub use redactor::{RedactedCounts, RedactionCounts, Redactor};
pub use remaining::{RedactionCheck, RemainingName, ReplacedNames};
