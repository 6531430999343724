//! Files that a setting names, read whole within bounds.
//!
//! A path may lead to a pipe that nobody writes to, or to a device that never ends. A plain file is read at once; anything else has
//! [`PATIENCE`] to give all it has, so that `--key-file <(command)` works and a forgotten FIFO is an error instead of silence.

use crate::Instant;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};
use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;
use std::time::Duration;

/// How long a pipe or a device may take altogether.
const PATIENCE: Duration = Duration::from_secs(10);
/// Bytes that are read at once from what is no plain file.
const PIECE_BYTES: usize = 64 << 10;

/// Reads a whole file of at most so many bytes. Folders, longer files, and pipes that do not end in time are errors that say so.
pub fn read_file(path: &Path, bytes_max: usize) -> io::Result<Vec<u8>> {
    read_file_within(path, bytes_max, PATIENCE)
}

fn read_file_within(path: &Path, bytes_max: usize, patience: Duration) -> io::Result<Vec<u8>> {
    // Opening a pipe would otherwise wait for its writer.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let mut file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    let metadata = file.metadata()?;
    if metadata.is_dir() {
        return Err(io::Error::new(io::ErrorKind::IsADirectory, "it is a folder, not a file"));
    }
    if metadata.is_file() {
        let mut content = Vec::new();
        file.take(bytes_max as u64 + 1).read_to_end(&mut content)?;
        return bounded(content, bytes_max);
    }
    let began = Instant::now();
    let mut content = Vec::new();
    let mut piece = vec![0; PIECE_BYTES];
    while content.len() <= bytes_max {
        wait_for(&file, patience.saturating_sub(began.elapsed()))?;
        match file.read(&mut piece) {
            Ok(0) => break,
            Ok(length) => content.extend_from_slice(piece.get(..length).unwrap_or_default()),
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
            Err(error) => return Err(error),
        }
    }
    bounded(content, bytes_max)
}

/// Waits until there is something to be read, or the end.
fn wait_for(file: &File, left: Duration) -> io::Result<()> {
    let silent = || {
        let text = "it is no plain file, and what writes to it did not finish in time; give a plain file";
        Err(io::Error::new(io::ErrorKind::TimedOut, text))
    };
    if left.is_zero() {
        return silent();
    }
    let left = Timespec::try_from(left).map_err(io::Error::other)?;
    let mut watched = [PollFd::new(file, PollFlags::IN)];
    match poll(&mut watched, Some(&left)) {
        Ok(0) => silent(),
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

fn bounded(content: Vec<u8>, bytes_max: usize) -> io::Result<Vec<u8>> {
    if content.len() > bytes_max {
        let text = format!("it has more than {bytes_max} bytes, too many for what it should be");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, text));
    }
    Ok(content)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    #[test]
    fn plain_files_folders_and_devices() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, "12345").unwrap();
        assert_eq!(read_file(&path, 5).unwrap(), b"12345");
        assert_eq!(read_file(&path, 4).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
        assert_eq!(read_file(folder.path(), 5).unwrap_err().kind(), io::ErrorKind::IsADirectory);
        assert_eq!(read_file(&folder.path().join("none"), 5).unwrap_err().kind(), io::ErrorKind::NotFound);
        assert_eq!(read_file(Path::new("/dev/zero"), 5).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
        assert_eq!(read_file(Path::new("/dev/null"), 5).unwrap(), b"");
    }

    #[test]
    fn pipes_have_some_time() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pipe");
        rustix::fs::mkfifoat(rustix::fs::CWD, &path, Mode::RUSR | Mode::WUSR).unwrap();
        let silent = read_file_within(&path, 5, Duration::from_millis(50));
        assert_eq!(silent.unwrap_err().kind(), io::ErrorKind::TimedOut, "nobody writes");
        let writer = path.clone();
        let writer = std::thread::spawn(move || {
            let mut opened = File::options().write(true).open(writer).unwrap();
            opened.write_all(b"12").unwrap();
            opened.write_all(b"345").unwrap();
        });
        assert_eq!(read_file(&path, 5).unwrap(), b"12345", "somebody writes");
        writer.join().unwrap();
    }
}
