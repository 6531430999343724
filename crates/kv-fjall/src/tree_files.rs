//! Reads, without fjall, which files one of its keyspaces consists of.
//!
//! A keyspace is a folder of fjall's tree: `current` names the version in use and its checksum, `v<number>` lists the tables of
//! that version with their checksums, `tables/<number>` are the tables. Numbers are little-endian:
//! ```text
//! current   version u64, checksum u128 (xxh3 of the version's file), 00
//! v<number> sections; "tables" is: levels u8, each: runs u8, each: tables u32, each: number u64, 00, checksum u128, u64
//! end       "SFA!", 01, 00, checksum of the directory u128, its place u64, its length u64
//! directory "TOC!", sections u32, each: place u64, length u64, name length u16, name
//! ```
//! fjall does not compare `v<number>` with its checksum, opens a table by its end only, takes any table with the right number
//! for its own, and removes a keyspace whose `current` is missing. So it is looked at before fjall is.
//! In: a keyspace's folder, hostile. Out: what belongs to it, or the file that is not what was written.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use xxhash_rust::xxh3::{Xxh3Default, xxh3_128};

/// The name of the file that says which version is in use.
const CURRENT: &str = "current";
const TABLES: &str = "tables";
const CURRENT_BYTES: usize = 25;
const END_MAGIC: &[u8] = b"SFA!\x01\x00";
const END_BYTES: usize = END_MAGIC.len() + 16 + 8 + 8;
const DIRECTORY_MAGIC: &[u8] = b"TOC!";
/// Bytes at a table's end that tell it from any other: its directory, and mostly its description.
const TAIL_BYTES: u64 = 4096;
/// A version's file is some dozen bytes for each table.
const VERSION_BYTES_MAX: u64 = 64 << 20;
const BUFFER_BYTES: usize = 256 << 10;

/// A file that is not what was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BadFile {
    pub(crate) path: PathBuf,
    /// A verb phrase.
    pub(crate) what: &'static str,
}

/// A table that a version names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TableRecord {
    pub(crate) number: u64,
    /// Of the whole file.
    checksum: u128,
}

/// How a table is told from others without reading it whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TableMark {
    pub(crate) byte_count: u64,
    pub(crate) tail_checksum: u32,
}

/// The version in use of a keyspace's folder.
pub(crate) struct TreeFiles {
    folder: PathBuf,
    /// The content of `current`: changes whenever the tables do.
    pub(crate) version: [u8; CURRENT_BYTES],
    pub(crate) tables: Vec<TableRecord>,
}

impl TreeFiles {
    /// Reads `current` and the version it names.
    pub(crate) fn read(folder: &Path) -> Result<TreeFiles, BadFile> {
        let current = folder.join(CURRENT);
        let version = read_bounded(&current)?;
        let version: [u8; CURRENT_BYTES] = version[..].try_into().map_err(|_| not_whole(&current))?;
        let mut fields = Fields(&version);
        let (Some(number), Some(checksum), Some([0])) = (fields.u64(), fields.u128(), fields.take()) else {
            return Err(not_whole(&current));
        };
        let path = folder.join(format!("v{number}"));
        let bytes = read_bounded(&path)?;
        if xxh3_128(&bytes) != checksum {
            return Err(not_whole(&path));
        }
        let tables = tables_of(&bytes).ok_or_else(|| not_whole(&path))?;
        Ok(TreeFiles { folder: folder.to_path_buf(), version, tables })
    }

    pub(crate) fn table_path(&self, number: u64) -> PathBuf {
        self.folder.join(TABLES).join(number.to_string())
    }

    /// What a table looks like now.
    pub(crate) fn mark_of(&self, table: TableRecord) -> io::Result<TableMark> {
        let mut file = File::open(self.table_path(table.number))?;
        let byte_count = file.metadata()?.len();
        file.seek(SeekFrom::Start(byte_count.saturating_sub(TAIL_BYTES)))?;
        let mut tail = Vec::new();
        file.take(TAIL_BYTES).read_to_end(&mut tail)?;
        Ok(TableMark { byte_count, tail_checksum: crc32fast::hash(&tail) })
    }

    /// Checks that a table is there and is the one that was written: by what is known of it, or else by reading it whole.
    pub(crate) fn check_table(&self, table: TableRecord, known: Option<TableMark>) -> Result<(), BadFile> {
        let path = self.table_path(table.number);
        let found = match self.mark_of(table) {
            Ok(found) => found,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(BadFile { path, what: "is missing" });
            }
            Err(_) => return Err(BadFile { path, what: "cannot be read" }),
        };
        match known {
            Some(known) if known == found => Ok(()),
            _ => self.check_whole(table),
        }
    }

    /// Reads a table whole and compares it with what was written.
    pub(crate) fn check_whole(&self, table: TableRecord) -> Result<(), BadFile> {
        let path = self.table_path(table.number);
        match checksum_of(&path) {
            Ok(checksum) if checksum == table.checksum => Ok(()),
            Ok(_) => Err(BadFile { path, what: "is not the file that was written" }),
            Err(_) => Err(BadFile { path, what: "cannot be read" }),
        }
    }

    /// Names in the folder of tables that no table can have; fjall stops at them.
    pub(crate) fn check_names(&self) -> Result<(), BadFile> {
        let Ok(entries) = std::fs::read_dir(self.folder.join(TABLES)) else {
            // Without tables there may be no folder; with tables, each is missed by its name.
            return Ok(());
        };
        for entry in entries.flatten() {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            let is_passed = name == ".DS_Store" || name.starts_with("._");
            if !is_passed && (name.parse::<u64>().is_err() || entry.path().is_dir()) {
                return Err(BadFile { path: entry.path(), what: "does not belong there" });
            }
        }
        Ok(())
    }
}

/// Takes tables out of a keyspace: writes a version without them, and makes it the one in use. fjall must not have it open.
pub(crate) fn drop_tables(folder: &Path, dropped: &[u64]) -> io::Result<()> {
    let malformed = || io::Error::from(io::ErrorKind::InvalidData);
    let current = std::fs::read(folder.join(CURRENT))?;
    let number = Fields(&current).u64().ok_or_else(malformed)?;
    let file = std::fs::read(folder.join(format!("v{number}")))?;
    let rewritten = without_tables(&file, dropped).ok_or_else(malformed)?;
    let next = number + 1;
    let path = folder.join(format!("v{next}"));
    std::fs::write(&path, &rewritten)?;
    File::open(&path)?.sync_all()?;
    let mut current = next.to_le_bytes().to_vec();
    current.extend(xxh3_128(&rewritten).to_le_bytes());
    current.push(0);
    crate::folder::replace_file(&folder.join(CURRENT), &current)?;
    crate::folder::sync_folder(folder)
}

fn without_tables(file: &[u8], dropped: &[u64]) -> Option<Vec<u8>> {
    let (mut content, mut directory) = (Vec::new(), Vec::new());
    let sections = sections(file)?;
    directory.extend_from_slice(DIRECTORY_MAGIC);
    directory.extend((sections.len() as u32).to_le_bytes());
    for (name, bytes) in sections {
        let kept = if name == TABLES.as_bytes() { Some(kept_tables(bytes, dropped)?) } else { None };
        let bytes = kept.as_deref().unwrap_or(bytes);
        directory.extend((content.len() as u64).to_le_bytes());
        directory.extend((bytes.len() as u64).to_le_bytes());
        directory.extend((name.len() as u16).to_le_bytes());
        directory.extend_from_slice(name);
        content.extend_from_slice(bytes);
    }
    let place = content.len() as u64;
    content.extend_from_slice(&directory);
    content.extend_from_slice(END_MAGIC);
    content.extend(xxh3_128(&directory).to_le_bytes());
    content.extend(place.to_le_bytes());
    content.extend((directory.len() as u64).to_le_bytes());
    Some(content)
}

/// The list of tables without some of them; a run without tables goes.
fn kept_tables(section: &[u8], dropped: &[u64]) -> Option<Vec<u8>> {
    const TABLE_BYTES: usize = 8 + 1 + 16 + 8;
    let mut fields = Fields(section);
    let [levels] = fields.take()?;
    let mut kept = vec![levels];
    for _ in 0..levels {
        let mut runs = Vec::new();
        for _ in 0..fields.take::<1>()?[0] {
            let mut tables = Vec::new();
            for _ in 0..fields.u32()? {
                let table = fields.slice(TABLE_BYTES)?;
                if !dropped.contains(&Fields(table).u64()?) {
                    tables.push(table);
                }
            }
            if !tables.is_empty() {
                runs.push(tables);
            }
        }
        kept.push(u8::try_from(runs.len()).ok()?);
        for tables in runs {
            kept.extend((tables.len() as u32).to_le_bytes());
            kept.extend(tables.concat());
        }
    }
    kept.extend_from_slice(fields.0);
    Some(kept)
}

fn not_whole(path: &Path) -> BadFile {
    BadFile { path: path.to_path_buf(), what: "is not the file that was written" }
}

fn read_bounded(path: &Path) -> Result<Vec<u8>, BadFile> {
    let mut bytes = Vec::new();
    match File::open(path).and_then(|file| file.take(VERSION_BYTES_MAX).read_to_end(&mut bytes)) {
        Ok(_) => Ok(bytes),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Err(BadFile { path: path.to_path_buf(), what: "is missing" })
        }
        Err(_) => Err(BadFile { path: path.to_path_buf(), what: "cannot be read" }),
    }
}

fn checksum_of(path: &Path) -> io::Result<u128> {
    let mut file = File::open(path)?;
    let mut checksum = Xxh3Default::new();
    let mut buffer = vec![0; BUFFER_BYTES];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(checksum.digest128()),
            count => checksum.update(&buffer[..count]),
        }
    }
}

/// The tables that a version's file names.
fn tables_of(file: &[u8]) -> Option<Vec<TableRecord>> {
    let mut fields = Fields(section(file, b"tables")?);
    let mut tables = Vec::new();
    for _ in 0..fields.take::<1>()?[0] {
        for _ in 0..fields.take::<1>()?[0] {
            for _ in 0..fields.u32()? {
                let number = fields.u64()?;
                let [0] = fields.take()? else { return None };
                tables.push(TableRecord { number, checksum: fields.u128()? });
                fields.u64()?;
            }
        }
    }
    Some(tables)
}

fn section<'f>(file: &'f [u8], wanted: &[u8]) -> Option<&'f [u8]> {
    sections(file)?.into_iter().find(|(name, _)| *name == wanted).map(|(_, bytes)| bytes)
}

/// Names and bytes of all sections, in their order.
fn sections(file: &[u8]) -> Option<Vec<(&[u8], &[u8])>> {
    let end = file.len().checked_sub(END_BYTES)?;
    let mut fields = Fields(file[end..].strip_prefix(END_MAGIC)?);
    fields.u128()?;
    let directory = usize::try_from(fields.u64()?).ok()?;
    let mut fields = Fields(file.get(directory..)?.strip_prefix(DIRECTORY_MAGIC)?);
    let mut sections = Vec::new();
    for _ in 0..fields.u32()? {
        let (place, length) = (fields.u64()?, fields.u64()?);
        let name_length = u16::from_le_bytes(fields.take()?);
        let name = fields.slice(name_length.into())?;
        let place = usize::try_from(place).ok()?;
        sections.push((name, file.get(place..place.checked_add(usize::try_from(length).ok()?)?)?));
    }
    Some(sections)
}

/// Little-endian numbers one after the other.
struct Fields<'b>(&'b [u8]);

impl<'b> Fields<'b> {
    fn take<const COUNT: usize>(&mut self) -> Option<[u8; COUNT]> {
        let (taken, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*taken)
    }

    fn slice(&mut self, count: usize) -> Option<&'b [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn u32(&mut self) -> Option<u32> {
        self.take().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.take().map(u64::from_le_bytes)
    }

    fn u128(&mut self) -> Option<u128> {
        self.take().map(u128::from_le_bytes)
    }
}
