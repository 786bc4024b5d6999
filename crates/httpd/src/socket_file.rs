//! A socket in the file system.

use std::fs::{self, Metadata, Permissions};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};

/// Who may connect: who may write the file.
const MODE: u32 = 0o660;

/// The file of a socket, which is removed with the value unless it is another one by then.
#[derive(Debug)]
pub(crate) struct SocketFile {
    path: PathBuf,
    /// Device, inode, and when it was changed: the next file may have the inode again.
    identity: [i128; 4],
}

/// Makes a socket at a path. One that nobody listens at any more is replaced.
pub(crate) fn bind(path: &Path) -> io::Result<(OwnedFd, SocketFile)> {
    let listener = match UnixListener::bind(path) {
        Err(error) if error.kind() == io::ErrorKind::AddrInUse && is_left_over(path)? => {
            fs::remove_file(path)?;
            UnixListener::bind(path)
        }
        bound => bound,
    }?;
    // Until then nobody else may write it, but for a umask that has been cleared.
    fs::set_permissions(path, Permissions::from_mode(MODE))?;
    let made = fs::symlink_metadata(path)?;
    let file = SocketFile {
        path: path.to_owned(),
        identity: identity(&made),
    };
    Ok((listener.into(), file))
}

fn identity(file: &Metadata) -> [i128; 4] {
    [
        file.dev().into(),
        file.ino().into(),
        file.ctime().into(),
        file.ctime_nsec().into(),
    ]
}

/// Returns whether a file is a socket that nobody listens at.
fn is_left_over(path: &Path) -> io::Result<bool> {
    if !fs::symlink_metadata(path)?.file_type().is_socket() {
        return Ok(false);
    }
    // A server whose queue is full is not waited for: it is there.
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    let connected = connect(&socket, &SocketAddrUnix::new(path)?);
    Ok(connected == Err(Errno::CONNREFUSED))
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        let now = fs::symlink_metadata(&self.path);
        if now.is_ok_and(|now| identity(&now) == self.identity) {
            // Whether it can be removed or not, nobody listens there.
            let _ = fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn what_is_left_over_is_replaced_and_nothing_else() {
        let place = tempfile::tempdir().expect("a folder");
        let path = place.path().join("socket");
        let (socket, file) = bind(&path).expect("nobody is there");
        let mode = fs::metadata(&path).expect("it is there").mode();
        assert_eq!(mode & 0o777, MODE);
        let live = bind(&path).expect_err("somebody listens");
        assert_eq!(live.kind(), io::ErrorKind::AddrInUse);
        drop(socket);
        // As if its process had been killed.
        let (_socket, new) = bind(&path).expect("nobody listens");
        drop(file);
        UnixStream::connect(&path).expect("another's file is left alone");
        drop(new);
        assert!(!path.exists());
        fs::write(&path, "a file").expect("the folder is ours");
        let error = bind(&path).expect_err("it is no socket");
        assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
        assert_eq!(fs::read(&path).expect("it is there"), b"a file");
    }
}
