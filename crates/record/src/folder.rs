//! A new folder for a recording.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, fstat, mkdirat, openat, renameat, unlinkat};
use rustix::process::geteuid;

/// Bits of a mode by which others than the owner may write.
const OTHERS_WRITE: u32 = 0o022;

/// A folder that was made for a recording. Everything in it is made new and opened by the folder itself: whoever else
/// may write where it stands cannot put a link in its place.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    folder: OwnedFd,
}

impl Folder {
    /// Makes a folder that only its owner may look into: a recording names what ran on a host.
    ///
    /// # Errors
    ///
    /// AlreadyExists where there is something of that name, be it a link that leads nowhere; else those of mkdir(2) and
    /// open(2).
    pub fn create(path: &Path) -> io::Result<Folder> {
        mkdirat(CWD, path, Mode::RWXU)?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let folder = openat(CWD, path, flags, Mode::empty())?;
        // Who may write to the folder above could have put another in its place meanwhile.
        if fstat(&folder)?.st_uid != geteuid().as_raw() {
            return Err(io::Error::other(
                "another user has put a folder in its place",
            ));
        }
        Ok(Folder {
            path: path.to_owned(),
            folder,
        })
    }

    /// Opens a folder that is there, into which nobody may put anything but its owner, who is this user, or for root
    /// anybody.
    ///
    /// # Errors
    ///
    /// Those of open(2); PermissionDenied, with what to do, where it is not such a folder.
    pub fn open(path: &Path) -> io::Result<Folder> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = openat(CWD, path, flags, Mode::empty())?;
        let data = fstat(&folder)?;
        let denied = |why: &str| Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
        if data.st_mode & OTHERS_WRITE != 0 {
            return denied(
                "others than its owner may write to it: 'chmod 700' makes it the owner's alone",
            );
        }
        if data.st_uid != geteuid().as_raw() && !geteuid().is_root() {
            return denied("it belongs to another user");
        }
        Ok(Folder {
            path: path.to_owned(),
            folder,
        })
    }

    /// Returns the numbers of its owner and group.
    ///
    /// # Errors
    ///
    /// Those of fstat(2).
    pub fn owner(&self) -> io::Result<(u32, u32)> {
        let data = fstat(&self.folder)?;
        Ok((data.st_uid, data.st_gid))
    }

    /// Removes a file of it.
    ///
    /// # Errors
    ///
    /// Those of unlink(2).
    pub fn remove(&self, name: &str) -> io::Result<()> {
        Ok(unlinkat(&self.folder, name, AtFlags::empty())?)
    }

    /// Returns where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Makes a file in it.
    ///
    /// # Errors
    ///
    /// AlreadyExists where there is something of that name; those of open(2).
    pub fn file(&self, name: &str) -> io::Result<File> {
        let flags =
            OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = openat(&self.folder, name, flags, Mode::RUSR | Mode::WUSR)?;
        Ok(File::from(file))
    }

    /// Gives a file of it another name, in place of what has that name.
    ///
    /// # Errors
    ///
    /// Those of rename(2).
    pub fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        Ok(renameat(&self.folder, from, &self.folder, to)?)
    }

    /// Removes it with the files of these names, as far as that is allowed: nothing was recorded in it.
    pub fn discard(self, names: &[&str]) {
        for name in names {
            let _ = unlinkat(&self.folder, *name, AtFlags::empty());
        }
        let _ = unlinkat(CWD, &self.path, AtFlags::REMOVEDIR);
    }
}

/// Returns whether a file still has a name: what is written to one that was removed is gone when it is closed.
///
/// # Errors
///
/// Those of fstat(2).
pub fn has_name(file: &File) -> io::Result<bool> {
    Ok(fstat(file)?.st_nlink > 0)
}
