/*!
How a recording of this machine is made, on top of `record` (events, rings, files) and `agent` (the protocol): what its
file says of the machine ([`before`]), a recording from its beginning to its end ([`record_host`]), the flight recorder
([`FlightRecorder`], [`OverwritingRecorder`], and [`ArmedRecorder`] for who decides when it writes), guests that are
recorded with their host ([`GuestAgents`]), which events answer a host's questions within the bounds of a file
([`open_for_guest`]), and this machine as the guest whose recording a host asks for ([`AskedMachine`]).

It talks to the kernel, since that is what it is for. It prints nothing and knows no command line: what is to be said
meanwhile goes to [`RecordingNews`].
*/
#![forbid(unsafe_code)]

mod agents;
mod armed;
mod clocks;
mod command;
mod disturbance;
mod error;
mod flight;
mod folder;
mod guest;
mod guest_file;
mod kept;
mod machine;
mod news;
mod overwriting;
mod privileges;
mod questions;
mod whole;

pub use agents::{GuestAgents, GuestsRequest};
pub use armed::{ArmedOutcome, ArmedRecorder, ArmedTarget, RECORDED_FILES};
pub use clocks::clock_comparisons;
pub use command::{goes_on, start};
pub use error::RecordingError;
pub use flight::{FlightRecorder, LateInstance, LateWatch};
pub use folder::{FOLDER_PREFIX, HOST_DATA, HOST_FACTS, RecordingFolder, remove_recording};
pub use guest::{AskedMachine, DATA, GuestFile};
pub use kept::{FlightRequest, KeptTime};
pub use machine::{Program, before, missing_sentences, of_machine};
pub use news::RecordingNews;
pub use overwriting::OverwritingRecorder;
pub use privileges::{KeptPrivileges, give_away, give_away_all};
pub use questions::{open_for_guest, too_small};
pub use whole::{HostOutcome, HostRequest, record_host};
