//! The archive of a dump: a tar of JSON, whose last entry says what must be in it.
//!
//! ```text
//! definitions.json           databases with containers, policies, throughput, scripts, users and permissions
//! items/0001/000001.jsonl    documents of the first container, one a line; further parts follow
//! manifest.json              every entry with its bytes and SHA-256; of each container its documents and their moment
//! ```
//!
//! Compressed by the file's name (`.zst`, `.gz`), plain otherwise. An archive without its manifest was cut, and is refused.
//! Entries are plain files with names of the header's own length; the documents of a container stand together, in the order of the manifest.

use crate::definitions;
use crate::error::ToolError;
use crate::input;
use crate::output::OpenOutput;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

/// The name of the format, and its version.
const FORMAT: &str = "astrarium-dump";
const VERSION: u64 = 1;
/// Longest entry: parts of documents are far shorter, definitions may have thousands of scripts.
const ENTRY_BYTES_MAX: u64 = 256 << 20;
/// Most entries.
const ENTRIES_MAX: usize = 10_000_000;

pub(crate) const DEFINITIONS: &str = "definitions.json";
const MANIFEST: &str = "manifest.json";

/// What is said of other files.
const NO_ARCHIVE: &str =
    "it is no archive that astrarium dump has written; files of documents are for astrarium import";

/// An archive that is being written.
pub(crate) struct ArchiveWriter {
    tar: tar::Builder<OpenOutput>,
    entries: Vec<Value>,
    path: PathBuf,
    seconds: u64,
}

impl ArchiveWriter {
    pub(crate) fn create(path: &Path, seconds: u64) -> Result<ArchiveWriter, ToolError> {
        let tar = tar::Builder::new(OpenOutput::open(Some(path))?);
        Ok(ArchiveWriter { tar, entries: Vec::new(), path: path.to_owned(), seconds })
    }

    /// Adds an entry.
    pub(crate) fn add(&mut self, name: &str, content: &[u8]) -> Result<(), ToolError> {
        self.append(name, content)?;
        self.entries.push(json!({"path": name, "bytes": content.len(), "sha256": digest(content)}));
        Ok(())
    }

    /// Adds the manifest and gives the file its name.
    pub(crate) fn finish(mut self, about: Value) -> Result<(), ToolError> {
        let mut manifest = json!({"format": FORMAT, "version": VERSION});
        if let (Some(manifest), Value::Object(about)) = (manifest.as_object_mut(), about) {
            manifest.extend(about);
        }
        manifest["entries"] = Value::Array(std::mem::take(&mut self.entries));
        self.append(MANIFEST, format!("{manifest:#}\n").as_bytes())?;
        let output = self.tar.into_inner().map_err(ToolError::file("write", &self.path))?;
        output.finish()
    }

    fn append(&mut self, name: &str, content: &[u8]) -> Result<(), ToolError> {
        let mut header = tar::Header::new_ustar();
        header.set_size(content.len() as u64);
        header.set_mode(0o600);
        header.set_mtime(self.seconds);
        self.tar.append_data(&mut header, name, content).map_err(ToolError::file("write", &self.path))
    }
}

/// What an archive says about itself.
#[derive(Debug, Clone)]
pub(crate) struct CheckedArchive {
    pub(crate) manifest: Value,
    pub(crate) definitions: Value,
}

/// Reads an archive from its beginning to its end, and checks everything in it against its manifest.
pub(crate) fn check(path: &Path) -> Result<CheckedArchive, ToolError> {
    check_bytes(opened(path)?, path)
}

/// The same of an archive that is opened already.
pub(crate) fn check_bytes(raw: Box<dyn Read + Send>, path: &Path) -> Result<CheckedArchive, ToolError> {
    let bad = |what: String| {
        ToolError::input(format!("{} cannot be loaded, and nothing was changed: {what}", path.display()))
    };
    let mut found: BTreeMap<String, (u64, String)> = BTreeMap::new();
    let mut folders: Vec<(String, u64)> = Vec::new();
    let (mut manifest, mut definitions) = (None, None);
    let read = read_entries(raw, path, |name, content| {
        if manifest.is_some() {
            return Err(ToolError::input("something follows its manifest"));
        }
        match name {
            MANIFEST => manifest = Some(serde_json::from_slice::<Value>(&content).unwrap_or_default()),
            name => {
                if name == DEFINITIONS {
                    definitions = serde_json::from_slice::<Value>(&content).ok();
                } else {
                    let folder = folder_of(name)
                        .ok_or_else(|| ToolError::input(format!("{name} is unknown in it; {NO_ARCHIVE}")))?;
                    let count = documents_in(&content).count() as u64;
                    match folders.last_mut() {
                        Some((last, documents)) if last == folder => *documents += count,
                        _ => folders.push((folder.to_owned(), count)),
                    }
                }
                if found.insert(name.to_owned(), (content.len() as u64, digest(&content))).is_some()
                    || found.len() > ENTRIES_MAX
                {
                    return Err(ToolError::input(format!("{name} is in it twice")));
                }
            }
        }
        Ok(())
    });
    let is_foreign = found.is_empty() && manifest.is_none();
    read.map_err(|error| match error {
        ToolError::Files { .. } if is_foreign => bad(NO_ARCHIVE.to_owned()),
        ToolError::Files { .. } => bad(format!("{error} (it may have been cut)")),
        error => bad(error.to_string()),
    })?;
    if is_foreign {
        return Err(bad(NO_ARCHIVE.to_owned()));
    }
    let manifest = manifest.ok_or_else(|| bad("it has no manifest, so it was cut".to_owned()))?;
    if manifest["format"] != FORMAT {
        return Err(bad("it is no archive of astrarium dump".to_owned()));
    }
    if manifest["version"] != VERSION {
        return Err(bad(format!("it has version {}, and this program knows {VERSION}", manifest["version"])));
    }
    for entry in manifest["entries"].as_array().map_or(&[][..], Vec::as_slice) {
        let name = entry["path"].as_str().unwrap_or_default();
        match found.remove(name) {
            None => return Err(bad(format!("{name} is missing"))),
            Some((bytes, digest)) if entry["bytes"] != bytes || entry["sha256"] != digest => {
                return Err(bad(format!("{name} is not what was written: its checksum differs")));
            }
            Some(_) => {}
        }
    }
    if let Some(name) = found.keys().next() {
        return Err(bad(format!("{name} is not in its manifest")));
    }
    let definitions = definitions.ok_or_else(|| bad(format!("{DEFINITIONS} is missing or broken")))?;
    check_containers(&manifest, &definitions, &folders).map_err(bad)?;
    Ok(CheckedArchive { manifest, definitions })
}

/// The manifest tells of the containers that are defined, and of nothing else; the documents are theirs, as many as it says.
fn check_containers(manifest: &Value, definitions: &Value, folders: &[(String, u64)]) -> Result<(), String> {
    let list = |value: &Value, name: &str| value[name].as_array().cloned().unwrap_or_default();
    let text = |value: &Value, name: &str| value[name].as_str().unwrap_or_default().to_owned();
    let mut defined = BTreeSet::new();
    // What is not what the service takes would be found out when half of the containers are made.
    let check_throughput = |owner: &Value, name: &str| {
        let checked = owner.get("throughput").map_or(Ok(()), definitions::check_throughput);
        checked.map_err(|what| format!("{name} {what}"))
    };
    for database in list(definitions, "databases") {
        check_throughput(&database, &text(&database, "id"))?;
        for container in list(&database, "containers") {
            let name = (text(&database, "id"), text(&container, "id"));
            check_throughput(&container, &format!("{}/{}", name.0, name.1))?;
            if !defined.insert(name.clone()) {
                return Err(format!("{}/{} is defined twice", name.0, name.1));
            }
        }
    }
    let mut left = folders.iter().peekable();
    for container in list(manifest, "containers") {
        let name = (text(&container, "database"), text(&container, "container"));
        let shown = format!("{}/{}", name.0, name.1);
        if !defined.remove(&name) {
            return Err(format!(
                "its manifest tells of {shown}, which {DEFINITIONS} lacks, or tells of it twice"
            ));
        }
        let folder = text(&container, "folder");
        let count = left.next_if(|(own, _)| *own == folder).map_or(0, |(_, count)| *count);
        if container["documents"] != count {
            return Err(format!(
                "{shown} has {count} documents in it, and its manifest tells of {}",
                container["documents"]
            ));
        }
    }
    match (defined.first(), left.next()) {
        (Some((database, container)), _) => {
            Err(format!("its manifest does not tell of {database}/{container}"))
        }
        (None, Some((folder, _))) => Err(format!("{folder} belongs to no container, or stands out of order")),
        (None, None) => Ok(()),
    }
}

/// The folder of a part of a container's documents, `items/0001`; none if the name is of something else.
pub(crate) fn folder_of(name: &str) -> Option<&str> {
    let (folder, part) = name.rsplit_once('/')?;
    (folder.starts_with("items/") && part.strip_suffix(".jsonl").is_some()).then_some(folder)
}

/// The documents of a part.
pub(crate) fn documents_in(part: &[u8]) -> impl Iterator<Item = &[u8]> {
    part.split(|byte| *byte == b'\n').filter(|line| !line.is_empty())
}

/// Gives every entry, in order.
pub(crate) fn for_each_entry(
    path: &Path,
    take: impl FnMut(&str, Vec<u8>) -> Result<(), ToolError>,
) -> Result<(), ToolError> {
    read_entries(opened(path)?, path, take)
}

fn opened(path: &Path) -> Result<Box<dyn Read + Send>, ToolError> {
    let found = std::fs::metadata(path).map_err(ToolError::file("open", path))?;
    if !found.is_file() {
        let what = if found.is_dir() { "a folder" } else { "no plain file, and an archive is read twice" };
        return Err(ToolError::input(format!(
            "{} is {what}; give the file that astrarium dump has written",
            path.display()
        )));
    }
    let file = File::open(path).map_err(ToolError::file("open", path))?;
    Ok(Box::new(BufReader::new(file)))
}

fn read_entries(
    raw: Box<dyn Read + Send>,
    path: &Path,
    mut take: impl FnMut(&str, Vec<u8>) -> Result<(), ToolError>,
) -> Result<(), ToolError> {
    let failed = |error| ToolError::file("read", path)(error);
    let raw = input::decompressed(raw).map_err(failed)?;
    let mut archive = tar::Archive::new(raw);
    // Raw: otherwise long names and such are read into memory before anybody is asked how long they are.
    for entry in archive.entries().map_err(failed)?.raw(true) {
        let mut entry = entry.map_err(failed)?;
        let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        if !entry.header().entry_type().is_file() {
            return Err(ToolError::input(format!("{name:?} is no plain file in it")));
        }
        let size = entry.size();
        if size > ENTRY_BYTES_MAX {
            return Err(ToolError::input(format!("{name} has {size} bytes, more than any entry may")));
        }
        let mut content = Vec::new();
        entry.by_ref().take(ENTRY_BYTES_MAX).read_to_end(&mut content).map_err(failed)?;
        if content.len() as u64 != size {
            return Err(ToolError::input(format!("{name} ends too early")));
        }
        take(&name, content)?;
    }
    Ok(())
}

/// SHA-256 in hexadecimal.
pub(crate) fn digest(content: &[u8]) -> String {
    let mut text = String::with_capacity(64);
    for byte in Sha256::digest(content) {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEFINED: &[u8] = b"{\"databases\":[{\"id\":\"d\",\"containers\":[{\"id\":\"c\"}]}]}";

    fn listed(name: &str, folder: &str, documents: u64) -> Value {
        json!({"database": "d", "container": name, "folder": folder, "documents": documents})
    }

    #[test]
    fn manifests_tell_of_what_is_there() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.tar");
        let check = |entries: &[&str], containers: Value, fragment: &str| {
            let mut writer = ArchiveWriter::create(&path, 7).unwrap();
            writer.add(DEFINITIONS, DEFINED).unwrap();
            for entry in entries {
                writer.add(entry, b"{\"id\":\"1\"}\n{\"id\":\"2\"}\n").unwrap();
            }
            writer.finish(json!({"containers": containers})).unwrap();
            let told = check(&path).map_or_else(|error| error.to_string(), |_| String::new());
            assert!(
                told.contains(fragment) && told.is_empty() == fragment.is_empty(),
                "{told:?} {fragment:?}"
            );
        };
        let (first, second) = ("items/0001/000001.jsonl", "items/0002/000001.jsonl");
        check(&[first], json!([listed("c", "items/0001", 2)]), "");
        check(&[], json!([listed("c", "items/0001", 0)]), "");
        check(
            &[first],
            json!([listed("c", "items/0001", 3)]),
            "has 2 documents in it, and its manifest tells of 3",
        );
        check(&[], json!([]), "does not tell of d/c");
        check(&[], json!([listed("x", "items/0001", 0)]), "which definitions.json lacks");
        check(&[], json!([listed("c", "items/0001", 0), listed("c", "items/0002", 0)]), "twice");
        check(&[first, second], json!([listed("c", "items/0001", 2)]), "items/0002 belongs to no container");
        check(&["other"], json!([listed("c", "items/0001", 0)]), "other is unknown in it");
    }

    #[test]
    fn only_plain_files_are_read() {
        let long = |kind: tar::EntryType| {
            let mut builder = tar::Builder::new(Vec::new());
            let mut header = tar::Header::new_gnu();
            header.set_entry_type(kind);
            header.set_size(600 << 20);
            header.set_path("././@LongLink").unwrap();
            header.set_cksum();
            let content = std::io::Read::take(std::io::repeat(b'x'), 0);
            builder.append(&header, content).unwrap();
            builder.into_inner().unwrap()
        };
        for kind in [
            tar::EntryType::GNULongName,
            tar::EntryType::XHeader,
            tar::EntryType::Symlink,
            tar::EntryType::GNUSparse,
        ] {
            let raw = Box::new(std::io::Cursor::new(long(kind)));
            let error = check_bytes(raw, Path::new("x")).unwrap_err().to_string();
            assert!(error.contains("is no plain file in it"), "{kind:?} {error}");
        }
    }

    #[test]
    fn archives_are_whole_or_refused() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["a.tar", "a.tar.zst", "a.tar.gz"] {
            let path = folder.path().join(name);
            let mut writer = ArchiveWriter::create(&path, 7).unwrap();
            writer.add(DEFINITIONS, DEFINED).unwrap();
            writer.add("items/0001/000001.jsonl", &b"{\"id\":\"1\"}\n".repeat(5_000)).unwrap();
            assert!(!path.exists(), "it appears when it is whole");
            writer.finish(json!({"containers": [listed("c", "items/0001", 5_000)]})).unwrap();
            let checked = check(&path).unwrap();
            assert_eq!(checked.definitions["databases"][0]["id"], "d");
            let whole = std::fs::read(&path).unwrap();
            for cut in [whole.len() / 2, whole.len() * 9 / 10, 600.min(whole.len() / 3), 0] {
                std::fs::write(&path, &whole[..cut]).unwrap();
                let error = check(&path).unwrap_err().to_string();
                assert!(error.contains("nothing was changed"), "{name} {cut}: {error}");
            }
            if name == "a.tar" {
                let mut damaged = whole.clone();
                let at = damaged.windows(4).position(|bytes| bytes == b"\"1\"}").unwrap();
                damaged[at + 1] = b'2';
                std::fs::write(&path, &damaged).unwrap();
                assert!(check(&path).unwrap_err().to_string().contains("checksum differs"));
            }
        }
        let path = folder.path().join("other");
        std::fs::write(&path, "hello").unwrap();
        assert!(check(&path).is_err());
    }
}
