//! A second folder with the same content, to try out what must not change the first: checking a copy that may only be read,
//! and repairing.
//!
//! Tables and runs never change once they are written, so the shadow has links to them; everything else is small and copied.
//! In: a data folder that nobody has open. Out: a folder that opens like it. A repaired one can take the place of the first:
//! ```text
//! repair.new/         the shadow, while it is being repaired
//! repair.new/READY    it is whole: whoever opens the folder next finishes putting it in place
//! before-repair/      what it replaced
//! ```
//! Invariant: until READY is there the folder is what it was; from then on it is the repaired one, whenever a crash comes.

use crate::error::{Doing, OpenError};
use crate::folder::{sync_folder, without_format};
use std::fs::{File, TryLockError};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

const REPAIR_FOLDER: &str = "repair.new";
const REPLACED_FOLDER: &str = "before-repair";
const READY_FILE: &str = "READY";
const LOCK_FILE: &str = "LOCK";

/// What a storage folder consists of.
const CONTENT: [&str; 6] = ["FORMAT", "ACKNOWLEDGED", "LAST", "FILES", "engine", "set"];

/// A shadow of a data folder; removed when it is dropped.
#[derive(Debug)]
pub struct Shadow {
    folder: PathBuf,
    path: PathBuf,
    /// Held so that nobody opens the folder meanwhile; nothing where the folder has no lock and may not be written.
    _lock: Option<File>,
    is_kept: bool,
}

impl Drop for Shadow {
    fn drop(&mut self) {
        if !self.is_kept {
            let _ = std::fs::remove_dir_all(&self.path);
        }
    }
}

impl Shadow {
    /// In the system's folder for temporary files, with symbolic links. The folder itself is not written to.
    pub fn for_reading(folder: &Path) -> Result<Shadow, OpenError> {
        let folder = std::path::absolute(folder).doing("find", folder)?;
        let name =
            format!("astrarium-shadow-{}-{}", std::process::id(), crate::identity::FolderIdentity::new());
        let path = std::env::temp_dir().join(name);
        Shadow::make(&folder, path, link_symbolic)
    }

    /// Inside the folder, with hard links, so that it can be put in its place.
    pub fn for_repair(folder: &Path) -> Result<Shadow, OpenError> {
        let path = folder.join(REPAIR_FOLDER);
        if path.try_exists().doing("look for", &path)? {
            std::fs::remove_dir_all(&path).doing("remove", &path)?;
        }
        Shadow::make(folder, path, |from, to| std::fs::hard_link(from, to).or_else(|_| copy(from, to)))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Puts the shadow in the place of what it was made from, which is kept beside.
    pub fn put_in_place(mut self) -> Result<(), OpenError> {
        sync_all(&self.path).doing("sync", &self.path)?;
        let ready = self.path.join(READY_FILE);
        File::create(&ready).and_then(|file| file.sync_all()).doing("write", &ready)?;
        sync_folder(&self.path).doing("sync", &self.path)?;
        self.is_kept = true;
        finish_repair(&self.folder)
    }

    fn make(
        folder: &Path,
        path: PathBuf,
        link: impl Fn(&Path, &Path) -> io::Result<()> + Copy,
    ) -> Result<Shadow, OpenError> {
        let format = folder.join(CONTENT[0]);
        if !format.try_exists().doing("look for", &format)? {
            return Err(without_format(folder));
        }
        let lock = lock(folder)?;
        std::fs::create_dir(&path).doing("create", &path)?;
        let shadow = Shadow { folder: folder.to_path_buf(), path, _lock: lock, is_kept: false };
        for name in CONTENT {
            let (from, to) = (folder.join(name), shadow.path.join(name));
            let Ok(found) = std::fs::metadata(&from) else { continue };
            if found.is_dir() {
                copy_folder(&from, &to, link).doing("copy", &from)?;
            } else {
                copy(&from, &to).doing("copy", &from)?;
            }
        }
        Ok(shadow)
    }
}

/// Finishes a repair that was ready, and removes one that was not. For whoever holds the folder's lock.
pub(crate) fn finish_repair(folder: &Path) -> Result<(), OpenError> {
    let repaired = folder.join(REPAIR_FOLDER);
    if !repaired.try_exists().doing("look for", &repaired)? {
        return Ok(());
    }
    if repaired.join(READY_FILE).try_exists().doing("look into", &repaired)? {
        let kept = folder.join(REPLACED_FOLDER);
        std::fs::create_dir_all(&kept).doing("create", &kept)?;
        for name in CONTENT {
            put_in_place(folder, &repaired, &kept, name)
                .doing("put the repaired files in place in", folder)?;
        }
        sync_folder(folder).doing("sync", folder)?;
    }
    std::fs::remove_dir_all(&repaired).doing("remove", &repaired)
}

fn put_in_place(folder: &Path, repaired: &Path, kept: &Path, name: &str) -> io::Result<()> {
    let (new, own, old) = (repaired.join(name), folder.join(name), kept.join(name));
    // Once it is moved, there is nothing left to do for it.
    if !new.try_exists()? {
        return Ok(());
    }
    if own.try_exists()? {
        remove(&old)?;
        std::fs::rename(&own, &old)?;
    }
    std::fs::rename(&new, &own)
}

fn remove(path: &Path) -> io::Result<()> {
    match std::fs::symlink_metadata(path) {
        Ok(found) if found.is_dir() => std::fs::remove_dir_all(path),
        Ok(_) => std::fs::remove_file(path),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

/// Takes the folder's lock without writing to it.
fn lock(folder: &Path) -> Result<Option<File>, OpenError> {
    let path = folder.join(LOCK_FILE);
    let file = match File::open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error).doing("open", &path),
    };
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => {
            let mut text = String::new();
            let read = file.take(32).read_to_string(&mut text);
            let holder = read.ok().and_then(|_| text.trim_end().parse().ok());
            Err(OpenError::Locked { folder: folder.to_path_buf(), holder })
        }
        Err(TryLockError::Error(error)) => Err(error).doing("lock", &path),
    }
}

/// Whether a file never changes once it is there.
fn is_constant(path: &Path) -> bool {
    let is_table = path.parent().is_some_and(|parent| parent.ends_with("tables"));
    is_table || path.extension().is_some_and(|extension| extension == "run")
}

fn copy_folder(
    from: &Path,
    to: &Path,
    link: impl Fn(&Path, &Path) -> io::Result<()> + Copy,
) -> io::Result<()> {
    std::fs::create_dir(to)?;
    for entry in std::fs::read_dir(from)? {
        let path = entry?.path();
        let Some(name) = path.file_name() else { continue };
        let target = to.join(name);
        if path.is_dir() {
            copy_folder(&path, &target, link)?;
        } else if is_constant(&path) {
            link(&path, &target)?;
        } else {
            copy(&path, &target)?;
        }
    }
    Ok(())
}

/// Copies a file's content, and not that it may only be read.
fn copy(from: &Path, to: &Path) -> io::Result<()> {
    let (mut from, mut to) = (File::open(from)?, File::create(to)?);
    io::copy(&mut from, &mut to).map(drop)
}

#[cfg(unix)]
fn link_symbolic(from: &Path, to: &Path) -> io::Result<()> {
    std::os::unix::fs::symlink(from, to)
}

#[cfg(not(unix))]
fn link_symbolic(from: &Path, to: &Path) -> io::Result<()> {
    copy(from, to)
}

fn sync_all(folder: &Path) -> io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            sync_all(&path)?;
        } else {
            File::open(&path)?.sync_all()?;
        }
    }
    sync_folder(folder)
}
