//! Files and folders that only their owner may use: those that the program makes, and those of a data folder made before.
//!
//! Not here: the rights of files that must be private from their first byte on whoever makes them (`gateway::certificate`).

use rustix::fs::Mode;
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

/// What others than the owner may do.
const OTHERS: u32 = 0o077;

/// Has everything that the process makes be its owner's alone: folders 0700, files 0600.
pub(crate) fn by_default() {
    rustix::process::umask(Mode::from_bits_truncate(OTHERS));
}

/// Takes what others may do with a data folder from them. What cannot be changed, as in a folder that belongs to somebody
/// else, is told and left.
pub(crate) fn withdraw(folder: &Path) {
    if let Err(error) = folder.canonicalize().and_then(|folder| withdraw_from(&folder)) {
        tracing::warn!(folder = %folder.display(), %error, "keep the data folder from other users; run chmod -R go= on it");
    }
}

fn withdraw_from(path: &Path) -> io::Result<()> {
    let found = match fs::symlink_metadata(path) {
        Ok(found) => found,
        // The engine works meanwhile.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    if found.is_symlink() {
        return Ok(());
    }
    let mode = found.permissions().mode();
    if mode & OTHERS != 0 {
        match fs::set_permissions(path, Permissions::from_mode(mode & !OTHERS & 0o7777)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    if found.is_dir() {
        for entry in fs::read_dir(path)? {
            withdraw_from(&entry?.path())?;
        }
    }
    Ok(())
}
