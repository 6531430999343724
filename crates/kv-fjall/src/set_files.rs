//! The folder `set/`: the blobs of the packed set as files.
//!
//! In: names and bytes, from the `packed` crate. Out: files, synced where it says so; errors that tell want from damage.
//! Invariants
//! - A small file is replaced by rename, after the folder was synced: what was finished before is there before it is named.
//! - Damaged files are moved beside (`set.damaged`), each time into a folder of its own; the oldest of these go when they are many
//!   or large.

use crate::folder::sync_folder;
use crate::health::is_passing;
use astrarium_packed::{Blob, BlobWriter, Blobs, Error, ReplaceError};
use std::fs::File;
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};

/// Beside the set's folder.
const KEPT_SUFFIX: &str = "damaged";

/// Times that damaged files are kept of.
const KEPT_COUNT_MAX: usize = 32;

/// Bytes of damaged files that are kept besides those of the last time: some segments.
const KEPT_BYTES_MAX: u64 = 256 << 20;

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

/// An empty folder for what is moved: the next number in the folder beside. Of what was kept before, the oldest goes when it is much.
fn kept_folder(folder: &Path) -> io::Result<PathBuf> {
    let all = folder.with_extension(KEPT_SUFFIX);
    std::fs::create_dir_all(&all)?;
    let mut kept = Vec::new();
    for entry in std::fs::read_dir(&all)? {
        let path = entry?.path();
        // What earlier versions of the program kept has no number, and is the oldest.
        let number = path.file_name().and_then(|name| name.to_str()?.parse::<u64>().ok()).unwrap_or(0);
        kept.push((number, path));
    }
    kept.sort_unstable_by(|left, right| right.cmp(left));
    let last = kept.first().map_or(0, |(number, _)| *number);
    let mut byte_count = 0;
    for (place, (_, path)) in kept.iter().enumerate() {
        byte_count += bytes_within(path)?;
        if place + 1 >= KEPT_COUNT_MAX || byte_count > KEPT_BYTES_MAX {
            if path.is_dir() { std::fs::remove_dir_all(path)? } else { std::fs::remove_file(path)? }
        }
    }
    let next = all.join((last + 1).to_string());
    std::fs::create_dir(&next)?;
    Ok(next)
}

/// Bytes of a file, or of the files right in a folder.
fn bytes_within(path: &Path) -> io::Result<u64> {
    if !path.is_dir() {
        return Ok(std::fs::metadata(path)?.len());
    }
    std::fs::read_dir(path)?.map(|entry| Ok(entry?.metadata()?.len())).sum()
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

#[cfg(test)]
mod tests {
    use super::*;

    /// The newest damaged files stay, and not too many of them.
    #[test]
    fn a_bounded_number_of_damaged_files_is_kept() {
        let data = tempfile::tempdir().unwrap();
        let files = SetFiles::new(data.path().join("set"));
        std::fs::create_dir(data.path().join("set")).unwrap();
        let kept = data.path().join("set.damaged");
        std::fs::create_dir(&kept).unwrap();
        std::fs::write(kept.join("7.run"), "of an earlier version").unwrap();
        let count = KEPT_COUNT_MAX + 9;
        for number in 1..=count {
            std::fs::write(data.path().join("set/7.run"), number.to_string()).unwrap();
            let place = files.set_aside(&["7.run".to_owned()]).unwrap();
            assert_eq!(std::fs::read_to_string(Path::new(&place).join("7.run")).unwrap(), number.to_string());
        }
        assert_eq!(std::fs::read_dir(&kept).unwrap().count(), KEPT_COUNT_MAX);
        assert!(!kept.join("7.run").exists());
        for number in 10..=count {
            let content = std::fs::read_to_string(kept.join(number.to_string()).join("7.run")).unwrap();
            assert_eq!(content, number.to_string());
        }
        move_aside(&data.path().join("set")).unwrap();
        assert!(kept.join((count + 1).to_string()).is_dir() && !data.path().join("set").exists());
    }
}
