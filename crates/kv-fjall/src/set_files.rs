//! The folder `set/`: the blobs of the packed set as files.
//!
//! In: names and bytes, from the `packed` crate. Out: files, synced where it says so; errors that tell want from damage.
//! Invariants
//! - A small file is replaced by rename, after the folder was synced: what was finished before is there before it is named.
//! - Damaged files are moved beside (`set.damaged`), one generation of them.

use crate::folder::sync_folder;
use crate::health::is_passing;
use astrarium_packed::{Blob, BlobWriter, Blobs, Error, ReplaceError};
use std::fs::File;
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};

/// Beside the set's folder.
const KEPT_SUFFIX: &str = "damaged";

/// What a file is called until it is whole.
const NEW_SUFFIX: &str = ".new";

const WRITE_BUFFER_BYTES: usize = 256 << 10;

/// The files of a folder, which is made when something is written.
pub(crate) struct SetFiles {
    folder: PathBuf,
}

impl SetFiles {
    pub(crate) fn new(folder: PathBuf) -> SetFiles {
        SetFiles { folder }
    }

    fn make_folder(&self) -> io::Result<()> {
        if self.folder.is_dir() {
            return Ok(());
        }
        std::fs::create_dir_all(&self.folder)?;
        sync_folder(self.folder.parent().unwrap_or(&self.folder))
    }
}

impl Blobs for SetFiles {
    fn create(&self, name: &str) -> Result<Box<dyn BlobWriter>, Error> {
        let create = || {
            self.make_folder()?;
            File::create(self.folder.join(name))
        };
        let file = create().map_err(|error| failed("creating an index file", &error))?;
        let file = BufWriter::with_capacity(WRITE_BUFFER_BYTES, file);
        Ok(Box::new(NewFile { file, path: self.folder.join(name) }))
    }

    fn open(&self, name: &str) -> Result<Option<Box<dyn Blob>>, Error> {
        match SetFile::open(&self.folder.join(name)) {
            Ok(file) => Ok(Some(Box::new(file))),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(unreadable("opening an index file", &error)),
        }
    }

    fn read(&self, name: &str) -> Result<Option<Vec<u8>>, Error> {
        match std::fs::read(self.folder.join(name)) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(unreadable("reading the list of index runs", &error)),
        }
    }

    fn replace(&self, name: &str, content: &[u8]) -> Result<(), ReplaceError> {
        let new = self.folder.join(format!("{name}{NEW_SUFFIX}"));
        let write_new = || {
            self.make_folder()?;
            sync_folder(&self.folder)?;
            let mut file = File::create(&new)?;
            file.write_all(content)?;
            file.sync_all()
        };
        write_new()
            .map_err(|error| ReplaceError::Unchanged(failed("writing the list of index runs", &error)))?;
        let rename = || {
            std::fs::rename(&new, self.folder.join(name))?;
            sync_folder(&self.folder)
        };
        rename().map_err(|error| ReplaceError::Unknown(failed("replacing the list of index runs", &error)))
    }

    fn list(&self) -> Result<Vec<String>, Error> {
        let entries = match std::fs::read_dir(&self.folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(failed("listing index files", &error)),
        };
        let name = |entry: io::Result<std::fs::DirEntry>| match entry {
            Ok(entry) => entry.file_name().into_string().ok().map(Ok),
            Err(error) => Some(Err(failed("listing index files", &error))),
        };
        entries.filter_map(name).collect()
    }

    fn remove(&self, name: &str) -> Result<(), Error> {
        match std::fs::remove_file(self.folder.join(name)) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(failed("removing an index file", &error))
            }
            _ => Ok(()),
        }
    }

    fn set_aside(&self, names: &[String]) -> Result<String, Error> {
        let move_all = || {
            let kept = kept_folder(&self.folder)?;
            for name in names {
                // A file that cannot be moved is removed by the next opening, since no list names it.
                if let Err(error) = std::fs::rename(self.folder.join(name), kept.join(name)) {
                    tracing::warn!(%error, name, "could not keep a file of the damaged index");
                }
            }
            sync_folder(&self.folder)?;
            Ok(kept.display().to_string())
        };
        move_all().map_err(|error| failed("setting index files aside", &error))
    }
}

/// Moves a whole folder aside.
pub(crate) fn move_aside(folder: &Path) -> io::Result<()> {
    let kept = kept_folder(folder)?;
    std::fs::remove_dir(&kept)?;
    std::fs::rename(folder, &kept)
}

/// An empty folder for what is moved; what was kept before goes.
fn kept_folder(folder: &Path) -> io::Result<PathBuf> {
    let kept = folder.with_extension(KEPT_SUFFIX);
    match std::fs::remove_dir_all(&kept) {
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    std::fs::create_dir(&kept)?;
    Ok(kept)
}

struct NewFile {
    file: BufWriter<File>,
    path: PathBuf,
}

impl BlobWriter for NewFile {
    fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.file.write_all(bytes).map_err(|error| failed("writing an index file", &error))
    }

    fn finish(mut self: Box<Self>) -> Result<Box<dyn Blob>, Error> {
        let mut finish = || {
            self.file.flush()?;
            self.file.get_ref().sync_all()?;
            SetFile::open(&self.path)
        };
        let file = finish().map_err(|error| failed("writing an index file", &error))?;
        Ok(Box::new(file))
    }
}

struct SetFile {
    file: File,
    byte_count: u64,
    path: PathBuf,
}

impl SetFile {
    fn open(path: &Path) -> io::Result<SetFile> {
        let file = File::open(path)?;
        let byte_count = file.metadata()?.len();
        Ok(SetFile { file, byte_count, path: path.to_path_buf() })
    }
}

impl Blob for SetFile {
    fn byte_count(&self) -> u64 {
        self.byte_count
    }

    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> Result<(), Error> {
        match read_at(&self.file, bytes, offset) {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => {
                let what = format!("the index file {} has become shorter", self.path.display());
                Err(Error::Damaged { what })
            }
            Err(error) => Err(unreadable("reading an index file", &error)),
        }
    }
}

#[cfg(unix)]
fn read_at(file: &File, bytes: &mut [u8], offset: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, bytes, offset)
}

#[cfg(windows)]
fn read_at(file: &File, mut bytes: &mut [u8], mut offset: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        let count = std::os::windows::fs::FileExt::seek_read(file, bytes, offset)?;
        if count == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        bytes = &mut bytes[count..];
        offset += count as u64;
    }
    Ok(())
}

/// A file that cannot be read: damage, unless the system may well give it later.
fn unreadable(doing: &str, error: &io::Error) -> Error {
    if error.kind() == ErrorKind::PermissionDenied || is_passing(error) {
        failed(doing, error)
    } else {
        Error::Damaged { what: format!("{doing} failed: {error}") }
    }
}

fn failed(doing: &str, error: &io::Error) -> Error {
    Error::Unavailable { reason: format!("{doing} failed: {error}") }
}
