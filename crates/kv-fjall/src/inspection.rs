//! Looks at fjall's files before fjall does: is everything there that belongs to the folder, and is it what was written?
//!
//! fjall forgives too much: it makes a missing journal anew and then shows nothing of what the tables hold, removes a keyspace
//! that is not complete, and takes any table of the right number for its own. Here a missing or foreign file is named instead.
//! In: the engine's folder and the list of files. Out: the files that are wrong, those of the index apart, since the index can be
//! made anew.
//! Invariant: nothing is changed, except that two files whose content is known without them are written again ([`mend`]).

use crate::error::{Doing, OpenError};
use crate::files::{Files, KEYSPACES_FOLDER};
use crate::folder::replace_file;
use crate::identity::FolderIdentity;
use crate::journal::{GROUP_KEY, GroupRecord};
use crate::store::{RESERVED_KEY, SET_NAME, SPACE_NAMES, STATE_NAME, SpaceRecord};
use crate::tree_files::{BadFile, TreeFiles};
use fjall::AbstractTree;
use lsm_tree::SequenceNumberCounter;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

const VERSION_FILE: &str = "version";
const VERSION: &[u8] = b"FJL\x03";
const LOCK_FILE: &str = "lock";

/// How closely tables are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Depth {
    /// A table that the list knows is compared with it; others are read whole.
    Known,
    /// Every table is read whole.
    Whole,
}

/// What is wrong.
#[derive(Debug, Default)]
pub(crate) struct Inspection {
    /// Files without which documents or definitions are missing.
    pub(crate) bad: Vec<BadFile>,
    /// Folders of keyspaces that only the index needs, with what is wrong in each.
    pub(crate) bad_index: Vec<(PathBuf, BadFile)>,
}

/// Writes again what is the same in every folder, if it is missing or damaged.
pub(crate) fn mend(engine: &Path) -> Result<(), OpenError> {
    let version = engine.join(VERSION_FILE);
    if std::fs::read(&version).ok().as_deref() != Some(VERSION) {
        replace_file(&version, VERSION).doing("write", &version)?;
    }
    let lock = engine.join(LOCK_FILE);
    if !lock.try_exists().doing("look for", &lock)? {
        std::fs::write(&lock, []).doing("write", &lock)?;
    }
    Ok(())
}

/// Looks at all keyspaces. `files` is the list, if it is there and of this folder.
pub(crate) fn inspect(engine: &Path, files: Option<&Files>, depth: Depth) -> Inspection {
    let mut found = Inspection::default();
    let folder = engine.join(KEYSPACES_FOLDER);
    let expected = files.map_or_else(usual_keyspaces, |files| files.keyspaces.clone());
    let Ok(entries) = std::fs::read_dir(&folder) else {
        found.bad.push(BadFile { path: folder, what: "is missing" });
        return found;
    };
    for entry in entries.flatten() {
        let number = entry.file_name().to_str().and_then(|name| name.parse::<u64>().ok());
        let is_known = |number: u64| number == 0 || files.is_none() || expected.contains_key(&number);
        if !number.is_some_and(is_known) {
            found.bad.push(BadFile { path: entry.path(), what: "does not belong there" });
        }
    }
    let own = [(0, String::new())];
    for (number, name) in own.into_iter().chain(expected) {
        let path = folder.join(number.to_string());
        for bad in inspect_keyspace(&path, number, files, depth) {
            if name == SET_NAME {
                found.bad_index.push((path.clone(), bad));
            } else {
                found.bad.push(bad);
            }
        }
    }
    found
}

fn inspect_keyspace(path: &Path, number: u64, files: Option<&Files>, depth: Depth) -> Vec<BadFile> {
    if !path.is_dir() {
        return vec![BadFile { path: path.to_path_buf(), what: "is missing" }];
    }
    let tree = match TreeFiles::read(path).and_then(|tree| tree.check_names().map(|()| tree)) {
        Ok(tree) => tree,
        Err(bad) => return vec![bad],
    };
    let check = |table| match depth {
        Depth::Known => {
            let known = files.and_then(|files| files.tables.get(&(number, table)));
            let record = tree.tables.iter().find(|record| record.number == table)?;
            tree.check_table(*record, known.copied()).err()
        }
        Depth::Whole => {
            let record = tree.tables.iter().find(|record| record.number == table)?;
            tree.check_table(*record, None).err()
        }
    };
    tree.tables.iter().map(|record| record.number).filter_map(check).collect()
}

/// What has to be given up because of a bad file, if the rest can go on without it.
pub(crate) enum Loss {
    /// A whole keyspace that can be made anew from documents.
    Keyspace(PathBuf),
    /// A table of documents.
    Table { keyspace: PathBuf, number: u64 },
}

/// What a bad file costs; nothing if it cannot be done without.
pub(crate) fn loss_of(engine: &Path, files: Option<&Files>, bad: &BadFile) -> Option<Loss> {
    let expected = files.map_or_else(usual_keyspaces, |files| files.keyspaces.clone());
    let folder = engine.join(KEYSPACES_FOLDER);
    let below = bad.path.strip_prefix(&folder).ok()?;
    let keyspace = below.iter().next()?.to_str()?;
    let name = expected.get(&keyspace.parse().ok()?)?;
    let [_, body, log] = SPACE_NAMES;
    let path = folder.join(keyspace);
    if name == log || name == STATE_NAME {
        return Some(Loss::Keyspace(path));
    }
    let is_table = below.iter().nth(1)?.to_str()? == "tables";
    let number = below.iter().nth(2)?.to_str()?.parse().ok()?;
    (name == body && is_table).then_some(Loss::Table { keyspace: path, number })
}

/// The numbers that fjall gives the keyspaces of a new folder.
fn usual_keyspaces() -> BTreeMap<u64, String> {
    let [meta, body, log] = SPACE_NAMES;
    (1..).zip([meta, body, log, SET_NAME, STATE_NAME].map(str::to_owned)).collect()
}

/// What the tables of a folder hold, whatever its journals say.
pub(crate) struct Persisted {
    /// The record of the last group, if there is one in tables.
    pub(crate) record: Option<GroupRecord>,
    /// The last group in tables that changed each space; 0 for none.
    pub(crate) spaces: [u64; SPACE_NAMES.len()],
}

/// Reads it from the tables alone. fjall must not have the folder open. Tables of another folder than `identity`'s, where that
/// is known, are bad files: once the journals are replayed over them, they look like the folder's own, and fjall leaves out
/// of the replay what such a table claims to hold already.
pub(crate) fn persisted(
    engine: &Path,
    files: Option<&Files>,
    identity: Option<FolderIdentity>,
) -> Result<Persisted, BadFile> {
    let numbers = files.map_or_else(usual_keyspaces, |files| files.keyspaces.clone());
    let path_of = |wanted: &str| {
        let number = numbers.iter().find(|(_, name)| *name == wanted).map_or(0, |(number, _)| *number);
        engine.join(KEYSPACES_FOLDER).join(number.to_string())
    };
    let check = |name: &str, found: Option<FolderIdentity>| match (found, identity) {
        (Some(found), Some(identity)) if found != identity => {
            Err(BadFile { path: path_of(name), what: "belongs to another data folder" })
        }
        _ => Ok(()),
    };
    let read = |wanted: &str, key: &[u8]| {
        let path = path_of(wanted);
        let (counter, visible) = (SequenceNumberCounter::default(), SequenceNumberCounter::default());
        let value = lsm_tree::Config::new(&path, counter, visible)
            .open()
            .and_then(|tree| tree.get(key, lsm_tree::SeqNo::MAX));
        value.map_err(|_| BadFile { path, what: "is damaged" })
    };
    let record = read(STATE_NAME, &GROUP_KEY)?.and_then(|value| GroupRecord::decode(&value));
    check(STATE_NAME, record.and_then(|record| record.lineage).map(|lineage| lineage.identity))?;
    let mut spaces = [0; SPACE_NAMES.len()];
    for (group, name) in spaces.iter_mut().zip(SPACE_NAMES) {
        let found = read(name, &RESERVED_KEY)?.and_then(|value| SpaceRecord::decode(&value));
        check(name, found.as_ref().map(|found| found.identity))?;
        *group = found.map_or(0, |found| found.group);
    }
    Ok(Persisted { record, spaces })
}
