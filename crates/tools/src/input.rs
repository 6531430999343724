//! Opens what is imported: a file or standard input, compressed or not.
//!
//! Compression is told by the first bytes (gzip, zstd), never by the name alone. The count of bytes taken from the file itself is kept for
//! progress.

use crate::error::ToolError;
use std::fs::File;
use std::io::{BufRead, BufReader, Cursor, Read, Seek as _, SeekFrom};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Buffer for reading.
const BUFFER_BYTES: usize = 256 << 10;
/// How much of a source identifies it.
pub(crate) const HEAD_BYTES: usize = 64 << 10;
/// Largest window that compressed data may ask for, as a power of two: 128 MB.
const WINDOW_LOG_MAX: u32 = 27;

/// An opened source.
pub(crate) struct OpenInput {
    /// The text inside.
    pub(crate) reader: Box<dyn BufRead + Send>,
    /// The first bytes of the text inside.
    pub(crate) head: Vec<u8>,
    /// Size of a plain file, which can be read again; none for standard input, pipes and devices.
    pub(crate) size: Option<u64>,
    /// Whether the text inside was packed.
    pub(crate) is_compressed: bool,
    /// Bytes of the file read so far.
    pub(crate) read: Arc<AtomicU64>,
}

/// Whether a name means standard input.
pub(crate) fn is_stdin(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// Opens a source.
pub(crate) fn open(path: &Path) -> Result<OpenInput, ToolError> {
    let (raw, size): (Box<dyn Read + Send>, Option<u64>) = if is_stdin(path) {
        (Box::new(std::io::stdin()), None)
    } else {
        let file = File::open(path).map_err(ToolError::file("open", path))?;
        let metadata = file.metadata().map_err(ToolError::file("look at", path))?;
        if metadata.is_dir() {
            return Err(ToolError::input(format!("{} is a folder, not a file", path.display())));
        }
        (Box::new(file), metadata.is_file().then_some(metadata.len()))
    };
    let read = Arc::new(AtomicU64::new(0));
    let counted = CountedBytes { inner: raw, read: Arc::clone(&read) };
    let (mut reader, is_compressed) = unpacked(Box::new(counted)).map_err(ToolError::file("read", path))?;
    let head = take_head(&mut reader, size.is_some()).map_err(ToolError::file("read", path))?;
    let start = if head.starts_with(b"\xEF\xBB\xBF") { 3 } else { 0 };
    let head = head.get(start..).unwrap_or_default().to_vec();
    let whole = BufReader::with_capacity(BUFFER_BYTES, Cursor::new(head.clone()).chain(reader));
    Ok(OpenInput { reader: Box::new(whole), head, size, is_compressed, read })
}

/// The last bytes of a plain file as it is.
pub(crate) fn tail(path: &Path) -> Result<Vec<u8>, ToolError> {
    let failed = |error| ToolError::file("read", path)(error);
    let mut file = File::open(path).map_err(failed)?;
    let size = file.metadata().map_err(failed)?.len();
    file.seek(SeekFrom::Start(size.saturating_sub(HEAD_BYTES as u64))).map_err(failed)?;
    let mut tail = Vec::new();
    file.take(HEAD_BYTES as u64).read_to_end(&mut tail).map_err(failed)?;
    Ok(tail)
}

/// Reads through compression, if the first bytes tell of one.
pub(crate) fn decompressed(raw: Box<dyn Read + Send>) -> std::io::Result<Box<dyn Read + Send>> {
    unpacked(raw).map(|(reader, _)| reader)
}

/// The same, and whether there is one.
fn unpacked(mut raw: Box<dyn Read + Send>) -> std::io::Result<(Box<dyn Read + Send>, bool)> {
    let mut magic = [0; 4];
    let count = read_full(&mut raw, &mut magic)?;
    let start = magic.get(..count).unwrap_or_default().to_vec();
    let whole = BufReader::with_capacity(BUFFER_BYTES, Cursor::new(start.clone()).chain(raw));
    if start.starts_with(b"\x1f\x8b") {
        return Ok((Box::new(flate2::bufread::MultiGzDecoder::new(whole)), true));
    }
    if start == b"\x28\xb5\x2f\xfd" {
        let mut decoder = zstd::stream::read::Decoder::with_buffer(whole)?;
        decoder.window_log_max(WINDOW_LOG_MAX)?;
        return Ok((Box::new(decoder), true));
    }
    Ok((Box::new(whole), false))
}

/// The first bytes: of a plain file as many as identify it, of anything else as few as tell what it is, since more may be long in coming.
fn take_head(reader: &mut Box<dyn Read + Send>, is_plain: bool) -> std::io::Result<Vec<u8>> {
    let mut head = vec![0; HEAD_BYTES];
    let mut count = 0;
    while let Some(rest) = head.get_mut(count..).filter(|rest| !rest.is_empty()) {
        let read = if is_plain { read_full(reader, rest)? } else { read_some(reader, rest)? };
        let is_told = |byte: &u8| !byte.is_ascii_whitespace() && !b"\xEF\xBB\xBF".contains(byte);
        let is_over = read == 0 || (!is_plain && rest.iter().take(read).any(is_told));
        count += read;
        if is_over {
            break;
        }
    }
    head.truncate(count);
    Ok(head)
}

fn read_some(reader: &mut dyn Read, buffer: &mut [u8]) -> std::io::Result<usize> {
    loop {
        match reader.read(buffer) {
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            read => return read,
        }
    }
}

/// Reads until the buffer is full or there is nothing more.
fn read_full(reader: &mut dyn Read, buffer: &mut [u8]) -> std::io::Result<usize> {
    let mut count = 0;
    while let Some(rest) = buffer.get_mut(count..).filter(|rest| !rest.is_empty()) {
        match read_some(reader, rest)? {
            0 => break,
            read => count += read,
        }
    }
    Ok(count)
}

/// Counts what is read.
struct CountedBytes {
    inner: Box<dyn Read + Send>,
    read: Arc<AtomicU64>,
}

impl Read for CountedBytes {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.read.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }
}
