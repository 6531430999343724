//! Opens what is exported to: a file or standard output, compressed by the file's name. A file appears under its name when it is whole.

use crate::error::ToolError;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// Level of zstd: its default.
const ZSTD_LEVEL: i32 = 3;

/// An opened destination.
pub(crate) struct OpenOutput {
    writer: Compressed,
    /// The file that becomes the destination at the end.
    file: Option<(NamedTempFile, PathBuf)>,
}

enum Compressed {
    Plain(BufWriter<Box<dyn Write + Send>>),
    Gzip(flate2::write::GzEncoder<BufWriter<Box<dyn Write + Send>>>),
    Zstd(zstd::stream::write::Encoder<'static, BufWriter<Box<dyn Write + Send>>>),
}

impl OpenOutput {
    /// Opens a file, or standard output for none or `-`.
    pub(crate) fn open(path: Option<&Path>) -> Result<OpenOutput, ToolError> {
        let Some(path) = path.filter(|path| path.as_os_str() != "-") else {
            let plain =
                BufWriter::with_capacity(1 << 20, Box::new(std::io::stdout()) as Box<dyn Write + Send>);
            return Ok(OpenOutput { writer: Compressed::Plain(plain), file: None });
        };
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let made = tempfile::Builder::new().prefix(".astrarium-").tempfile_in(folder);
        let file = made.map_err(ToolError::file("write into", folder))?;
        let handle: File = file.reopen().map_err(ToolError::file("write", path))?;
        let plain = BufWriter::with_capacity(1 << 20, Box::new(handle) as Box<dyn Write + Send>);
        let writer = match path.extension().and_then(|extension| extension.to_str()) {
            Some("gz" | "tgz") => {
                Compressed::Gzip(flate2::write::GzEncoder::new(plain, flate2::Compression::default()))
            }
            Some("zst" | "zstd") => {
                let encoder = zstd::stream::write::Encoder::new(plain, ZSTD_LEVEL);
                Compressed::Zstd(encoder.map_err(ToolError::file("write", path))?)
            }
            _ => Compressed::Plain(plain),
        };
        Ok(OpenOutput { writer, file: Some((file, path.to_owned())) })
    }

    /// Writes everything out, and gives a file its name.
    pub(crate) fn finish(self) -> Result<(), ToolError> {
        let shown =
            self.file.as_ref().map_or(Path::new("standard output"), |(_, path)| path.as_path()).to_owned();
        let failed = |error| ToolError::file("write", &shown)(error);
        let mut plain = match self.writer {
            Compressed::Plain(plain) => plain,
            Compressed::Gzip(encoder) => encoder.finish().map_err(failed)?,
            Compressed::Zstd(encoder) => encoder.finish().map_err(failed)?,
        };
        plain.flush().map_err(failed)?;
        drop(plain);
        if let Some((file, path)) = self.file {
            file.as_file().sync_all().map_err(failed)?;
            file.persist(&path).map_err(|error| failed(error.error))?;
        }
        Ok(())
    }
}

impl Write for OpenOutput {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        match &mut self.writer {
            Compressed::Plain(writer) => writer.write(bytes),
            Compressed::Gzip(writer) => writer.write(bytes),
            Compressed::Zstd(writer) => writer.write(bytes),
        }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        match &mut self.writer {
            Compressed::Plain(writer) => writer.flush(),
            Compressed::Gzip(writer) => writer.flush(),
            Compressed::Zstd(writer) => writer.flush(),
        }
    }
}
