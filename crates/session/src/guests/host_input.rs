//! Inputs of a command, put together: which of them are recordings of guests of which others.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use source::ReaderOptions;

use super::{Guest, pair};
use crate::options::is_standard_input;
use crate::{Error, Input, OpenRecording, Session};

/// A guest's recording that is named by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedGuest {
    /// The recording.
    pub path: PathBuf,
    /// The name, UUID or process of the VM that it is said to be of.
    pub vm: Option<String>,
}

/// An input, with the recordings of its guests.
#[derive(Debug)]
pub struct HostInput<'s> {
    input: Input<'s>,
    path: PathBuf,
    guests: Vec<AttachedGuest<'s>>,
    /// What its folder has and could not be taken, a full sentence each.
    left_out: Vec<String>,
    /// The names of those of its folder that were found to be its guests, set by [`HostInput::paired`].
    of_folder: OnceLock<Vec<String>>,
}

#[derive(Debug)]
struct AttachedGuest<'s> {
    input: Input<'s>,
    path: PathBuf,
    vm: Option<String>,
    /// Nobody named it: it stands in the host's folder.
    in_folder: bool,
}

/// The guests of a host.
#[derive(Debug, Default)]
pub struct GuestPairing<'g> {
    /// Those that are its guests.
    pub guests: Vec<Guest<'g>>,
    /// What its folder has and could not be taken, a full sentence each.
    pub left_out: Vec<String>,
}

impl Session {
    /// Opens inputs, and puts those of guests to the hosts with which they were recorded, as the files themselves say;
    /// what no other one knows stands by itself. `guests` are those of the one host that there may be then. A folder
    /// that `trapline record` made has the recordings of its host's guests with it, where none is named.
    ///
    /// # Errors
    ///
    /// Fails when an input cannot be read, and when guests are named and there are several hosts.
    pub fn hosts(
        &self,
        recordings: &[PathBuf],
        guests: &[NamedGuest],
    ) -> Result<Vec<HostInput<'_>>, Error> {
        let mut hosts = self.hosts_among(recordings, 1)?;
        self.add_guests(&mut hosts, guests)?;
        Ok(hosts)
    }

    /// Opens a host's recording and those of its guests, whoever names whom. Where one of these says that another one
    /// is its host's, that is the host; else the first one is. A folder that `trapline record` made has the recordings
    /// of its host's guests with it, where none is named.
    ///
    /// # Errors
    ///
    /// Fails when an input cannot be read.
    pub fn host(&self, recording: &Path, guests: &[NamedGuest]) -> Result<HostInput<'_>, Error> {
        let mut host = HostInput {
            input: self.input(recording)?,
            path: recording.to_owned(),
            guests: Vec::new(),
            left_out: Vec::new(),
            of_folder: OnceLock::new(),
        };
        for NamedGuest { path, vm } in guests {
            let mut input = self.input(path)?;
            let mut path = path.clone();
            if vm.is_none() && host.input.is_guest_of(&input) {
                std::mem::swap(&mut host.input, &mut input);
                std::mem::swap(&mut host.path, &mut path);
            }
            host.add(input, &path, vm.clone(), false);
        }
        if host.guests.is_empty() {
            host.look_into(self);
        }
        Ok(host)
    }

    /// Does so with the inputs alone, where so many are looked at at once. Guests that are named, and those of folders,
    /// are added by [`Session::add_guests`].
    ///
    /// # Errors
    ///
    /// Fails when an input cannot be read.
    pub fn hosts_among(
        &self,
        recordings: &[PathBuf],
        at_once: usize,
    ) -> Result<Vec<HostInput<'_>>, Error> {
        let threads = self.options().threads.max(1);
        let each = threads / threads.min(at_once.max(1));
        let recordings = &self.parts_of(recordings);
        let inputs = self.at_once(recordings, |path, _| self.input_with(path, each));
        let mut inputs: Vec<Option<Input<'_>>> = inputs
            .into_iter()
            .map(|one| one.map(Some))
            .collect::<Result<_, _>>()?;
        let of = hosts_of(&inputs);
        let mut hosts: Vec<(usize, HostInput<'_>)> = Vec::new();
        for (at, host) in of.iter().enumerate() {
            if host.is_none()
                && let Some(input) = inputs.get_mut(at).and_then(Option::take)
                && let Some(path) = recordings.get(at)
            {
                let host = HostInput {
                    input,
                    path: path.clone(),
                    guests: Vec::new(),
                    left_out: Vec::new(),
                    of_folder: OnceLock::new(),
                };
                hosts.push((at, host));
            }
        }
        for ((at, of), path) in of.iter().enumerate().zip(recordings) {
            let Some(of) = of else { continue };
            let found = hosts.iter_mut().find(|(number, _)| number == of);
            if let (Some((_, host)), Some(input)) =
                (found, inputs.get_mut(at).and_then(Option::take))
            {
                host.add(input, path, None, false);
            }
        }
        Ok(hosts.into_iter().map(|(_, host)| host).collect())
    }

    /// Adds guests to the one host that there may be then, and those that stand in folders to hosts that have none.
    ///
    /// # Errors
    ///
    /// Fails when a guest's recording cannot be read, and when there are guests and several hosts.
    pub fn add_guests<'s>(
        &'s self,
        hosts: &mut [HostInput<'s>],
        guests: &[NamedGuest],
    ) -> Result<(), Error> {
        if !guests.is_empty() && hosts.len() > 1 {
            let names = hosts.iter().map(|host| host.input.name().to_owned());
            return Err(Error::GuestsOfSeveral {
                names: names.collect(),
            });
        }
        for NamedGuest { path, vm } in guests {
            if let Some(host) = hosts.first_mut() {
                host.add(self.input(path)?, path, vm.clone(), false);
            }
        }
        for host in hosts {
            if host.guests.is_empty() {
                host.look_into(self);
            }
        }
        Ok(())
    }
}

/// Returns of each input which one is its host's, as they say themselves.
fn hosts_of(inputs: &[Option<Input<'_>>]) -> Vec<Option<usize>> {
    let mut hosts = vec![None; inputs.len()];
    if inputs.len() < 2 {
        return hosts;
    }
    let together = inputs.iter().flatten().map(|input| {
        let reader = input.source().reader(ReaderOptions::default()).ok()?;
        Some(reader.header().together.clone())
    });
    let together: Vec<_> = together.collect();
    let mut given = HashSet::new();
    for (one, found) in together.iter().zip(&mut hosts) {
        let Some(one) = one else { continue };
        let all = together.iter().enumerate().filter(|(_, host)| {
            host.as_ref().is_some_and(|host| {
                let named = one.host.is_some() && one.host == host.own;
                named || one.own.is_some_and(|own| host.guests.contains(&own))
            })
        });
        let all: Vec<usize> = all.map(|(at, _)| at).collect();
        // Where a host is there twice, as beside itself in a comparison, its guest may be there twice as well.
        let mut free = all.iter().copied();
        let free = one
            .own
            .and_then(|own| free.find(|at| given.insert((*at, own))));
        *found = free.or(all.first().copied());
    }
    // A host whose own host is there too stays one: only what has no guests here is a guest.
    let is_host: Vec<usize> = hosts.iter().copied().flatten().collect();
    for (at, host) in hosts.iter_mut().enumerate() {
        if is_host.contains(&at) {
            *host = None;
        }
    }
    hosts
}

impl<'s> HostInput<'s> {
    fn add(&mut self, input: Input<'s>, path: &Path, vm: Option<String>, in_folder: bool) {
        self.guests.push(AttachedGuest {
            input,
            path: path.to_owned(),
            vm,
            in_folder,
        });
    }

    /// Takes the guests of a folder that `trapline record` made.
    fn look_into(&mut self, session: &'s Session) {
        if is_standard_input(&self.path) {
            return;
        }
        for path in source::guests_in_folder(&self.path) {
            match session.input(&path) {
                Ok(input) => self.add(input, &path, None, true),
                Err(error) => self.left_out.push(left_out(&error)),
            }
        }
    }

    /// Returns the host's input.
    pub fn input(&self) -> &Input<'s> {
        &self.input
    }

    /// Returns the path of the host's, as it was given.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the names of all that is used, the host's first. Of guests in its folder these are known when it has
    /// been seen whose they are ([`HostInput::paired`]); before, they are not among them.
    pub fn names(&self) -> Vec<String> {
        let of_folder = self.of_folder.get().map_or(&[][..], Vec::as_slice);
        let guests = self
            .guests
            .iter()
            .map(|guest| (guest.in_folder, guest.input.name()));
        let used = guests
            .filter(|(in_folder, name)| !in_folder || of_folder.iter().any(|one| one == name));
        let all = std::iter::once(self.input.name()).chain(used.map(|(_, name)| name));
        all.map(str::to_owned).collect()
    }

    /// Returns the paths that were given: its own and those of its guests, but for what stands in its folder.
    pub fn given(&self) -> impl Iterator<Item = &Path> {
        let guests = self.guests.iter().filter(|guest| !guest.in_folder);
        std::iter::once(self.path.as_path()).chain(guests.map(|guest| guest.path.as_path()))
    }

    /// Returns the paths of its guests that were given, and the VMs that they are said to be of: what stands in its
    /// folder comes with that.
    pub fn guests(&self) -> impl Iterator<Item = (&Path, Option<&str>)> {
        let given = self.guests.iter().filter(|guest| !guest.in_folder);
        given.map(|guest| (guest.path.as_path(), guest.vm.as_deref()))
    }

    /// Returns whether there are any guests.
    pub fn has_guests(&self) -> bool {
        !self.guests.is_empty()
    }

    /// Finds whose guests the recordings are. What stands in the host's folder, and is of no guest of it, is left out,
    /// and it is said why.
    ///
    /// # Errors
    ///
    /// Fails when a recording that was named is of no guest of this host.
    pub fn paired(&self, host: &OpenRecording<'_>) -> Result<GuestPairing<'_>, Error> {
        let mut out = self.left_out.clone();
        let mut inputs = Vec::new();
        for guest in &self.guests {
            match guest.input.guest(guest.vm.as_deref()) {
                Ok(input) => inputs.push(input),
                Err(error) if guest.in_folder => out.push(left_out(&error)),
                Err(error) => return Err(error),
            }
        }
        let in_folder = |name: &str| {
            let mut guests = self.guests.iter();
            guests.any(|guest| guest.in_folder && guest.input.name() == name)
        };
        let guests = pair::pair(host, inputs, &mut |name, error| match in_folder(name) {
            true => {
                out.push(left_out(&error));
                Ok(())
            }
            false => Err(error),
        })?;
        // Whoever looked first saw the same.
        let _ = self.of_folder.set(
            guests
                .iter()
                .map(|guest| guest.name().to_owned())
                .filter(|name| in_folder(name))
                .collect(),
        );
        Ok(GuestPairing {
            guests,
            left_out: out,
        })
    }
}

fn left_out(error: &Error) -> String {
    let error = error.to_string();
    let end = if error.ends_with('?') { "" } else { "." };
    format!("A guest's recording in the folder is left out: {error}{end}")
}
