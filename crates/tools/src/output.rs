//! Opens what is exported to: a file or standard output, compressed by the file's name.
//!
//! A file appears under its name when it is whole. What is there and no plain file (a device, a pipe) is written to as it is, and a link stays
//! one: what it leads to is replaced.

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
    /// What it is called.
    path: PathBuf,
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
            return Ok(OpenOutput {
                writer: Compressed::Plain(plain),
                file: None,
                path: "standard output".into(),
            });
        };
        check_name(path)?;
        let (file, handle) = match destination(path)? {
            Destination::Written(handle) => (None, handle),
            Destination::Replaced(target) => {
                let folder = parent(&target);
                if !folder.is_dir() {
                    return Err(ToolError::input(format!(
                        "there is no folder {}; make it, or write elsewhere",
                        folder.display()
                    )));
                }
                let made = tempfile::Builder::new().prefix(".astrarium-").tempfile_in(folder);
                let file = made.map_err(ToolError::file("write into", folder))?;
                let handle = file.reopen().map_err(ToolError::file("write", path))?;
                (Some((file, target)), handle)
            }
        };
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
        Ok(OpenOutput { writer, file, path: path.to_owned() })
    }

    /// Writes everything out, and gives a file its name.
    pub(crate) fn finish(self) -> Result<(), ToolError> {
        let shown = self.path;
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

/// Refuses a name that says what the file would not be.
fn check_name(path: &Path) -> Result<(), ToolError> {
    let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    let shown = path.display();
    match extension.to_ascii_lowercase().as_str() {
        "zip" | "7z" | "rar" | "bz2" | "xz" | "lz4" | "br" => Err(ToolError::input(format!(
            "{shown}: this compression is not written; give a name that ends in .gz or .zst"
        ))),
        "xlsx" | "xls" | "ods" | "xml" | "yaml" | "yml" | "avro" | "orc" | "db" | "sqlite" | "bak" => {
            Err(ToolError::input(format!(
                "{shown}: .{extension} is not written; exports are .jsonl, .json, .csv, .tsv or .parquet, dumps are .tar.zst, .tar.gz or .tar"
            )))
        }
        _ => Ok(()),
    }
}

/// What a name stands for.
enum Destination {
    /// A plain file, or nothing yet: appears when it is whole.
    Replaced(PathBuf),
    /// Anything else, which is only written to.
    Written(File),
}

fn destination(path: &Path) -> Result<Destination, ToolError> {
    let failed = |error| ToolError::file("write", path)(error);
    let is_link = std::fs::symlink_metadata(path).is_ok_and(|found| found.is_symlink());
    match std::fs::metadata(path) {
        Ok(found) if found.is_file() && is_link => {
            Ok(Destination::Replaced(path.canonicalize().map_err(failed)?))
        }
        Ok(found) if found.is_file() => Ok(Destination::Replaced(path.to_owned())),
        Ok(found) if found.is_dir() => {
            Err(ToolError::input(format!("{} is a folder, not a file", path.display())))
        }
        Ok(_) => Ok(Destination::Written(File::options().write(true).open(path).map_err(failed)?)),
        Err(_) if is_link => Err(ToolError::input(format!(
            "{} is a link that leads nowhere; remove it, or give another name",
            path.display()
        ))),
        Err(_) => Ok(Destination::Replaced(path.to_owned())),
    }
}

/// Where there is room beside a destination for what has to wait: with it on its disk, or among temporary files if it is no plain file.
pub(crate) fn room_beside(path: &Path) -> PathBuf {
    match std::fs::metadata(path) {
        Ok(found) if !found.is_file() => std::env::temp_dir(),
        Ok(_) => {
            path.canonicalize().map_or_else(|_| parent(path).to_owned(), |path| parent(&path).to_owned())
        }
        Err(_) => parent(path).to_owned(),
    }
}

fn parent(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_and_devices_stay() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        std::fs::write(&file, "old").unwrap();
        std::os::unix::fs::symlink("file", &link).unwrap();
        let write = |path: &Path| {
            let mut output = OpenOutput::open(Some(path))?;
            output.write_all(b"new").unwrap();
            output.finish()
        };
        write(&link).unwrap();
        assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "new");
        std::fs::remove_file(&file).unwrap();
        assert!(write(&link).unwrap_err().to_string().contains("leads nowhere"));
        assert!(write(folder.path()).unwrap_err().to_string().contains("is a folder"));
        // A device is written to; nothing can be renamed onto one, so a link to one shows it as well as the device itself.
        let null = folder.path().join("null");
        std::os::unix::fs::symlink("/dev/null", &null).unwrap();
        write(&null).unwrap();
        assert!(std::fs::symlink_metadata(&null).unwrap().is_symlink());
        assert_eq!(room_beside(&null), std::env::temp_dir());
        assert_eq!(room_beside(Path::new("new")), Path::new("."));
    }
}
