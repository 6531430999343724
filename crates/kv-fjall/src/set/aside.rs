//! Keeping damaged files of the set, out of the way, for whoever wants to look at them.
//!
//! The set can be made anew from the documents, so damage of it is no reason to stop anything: a new set is begun, and the
//! old files are moved beside it. One generation of them is kept.

use super::manifest::Manifest;
use super::run_file::file_name;
use crate::folder::sync_folder;
use std::io;
use std::path::{Path, PathBuf};

/// Beside the set's folder.
const SUFFIX: &str = "damaged";

/// What is told to those who ask for keys.
pub(super) fn reason(what: &str) -> String {
    format!("{what}; it is being built anew, and queries read all documents until that is done")
}

/// Moves a whole folder aside; gives where it is.
pub(crate) fn move_folder(folder: &Path) -> io::Result<PathBuf> {
    let kept = kept_folder(folder)?;
    std::fs::remove_dir(&kept)?;
    std::fs::rename(folder, &kept)?;
    Ok(kept)
}

/// Moves the runs that a list names aside; gives where they are.
pub(super) fn move_runs(folder: &Path, manifest: &Manifest) -> io::Result<PathBuf> {
    let kept = kept_folder(folder)?;
    for run in &manifest.runs {
        let name = file_name(run.number);
        // A file that cannot be moved is removed by the next opening, since no list names it.
        if let Err(error) = std::fs::rename(folder.join(&name), kept.join(&name)) {
            tracing::warn!(%error, run = name, "could not keep a run of the damaged index");
        }
    }
    sync_folder(folder)?;
    Ok(kept)
}

/// An empty folder for what is moved; what was kept before goes.
fn kept_folder(folder: &Path) -> io::Result<PathBuf> {
    let kept = folder.with_extension(SUFFIX);
    match std::fs::remove_dir_all(&kept) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    std::fs::create_dir(&kept)?;
    Ok(kept)
}
