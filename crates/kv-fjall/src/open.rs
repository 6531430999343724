//! Opening a folder: everything that has to be true before the first read.
//!
//! In: a path. Out: a running [`FjallEngine`], or an [`OpenError`] an operator can act on.
//! The order: take the folder, read the list of files and the mark, look at fjall's files, judge the journals, cut a torn end,
//! compare journals with tables, open fjall, compare what it recovered with the mark, the journals and what each keyspace says
//! of itself, open the set, start the threads. Nothing is changed before a loss is reported, except that a torn end is cut (and
//! kept beside), and that what is the same in every folder is written again.
//!
//! Not here: how each step is done (`folder`, `files`, `mark`, `inspection`, `recovery`, `store`, `packed`).

use crate::committer::{Committer, TimeCounters};
use crate::error::{self, Doing, OpenError, opening};
use crate::files::{Files, FilesKeeper};
use crate::folder::{Folder, PresenceCheck, sync_folder};
use crate::free_space::FreeSpace;
use crate::healing::Healing;
use crate::health::EngineHealth;
use crate::identity::FolderIdentity;
use crate::inspection::{self, Depth, Loss};
use crate::journal::{self, FOLLOWED_COUNT, GroupRecord};
use crate::last::{self, Last};
use crate::mark::{self, Mark};
use crate::queue::CommitQueue;
use crate::reclaim::{ReclaimControl, Reclaimer};
use crate::recovery::{self, JournalVerdict, Journals};
use crate::set_files::{self, SetFiles};
use crate::snapshot::FjallSnapshot;
use crate::store::{History, SPACE_NAMES, Store};
use crate::tree_files::{BadFile, drop_tables};
use crate::view::KnownShards;
use crate::{Core, FjallEngine, Life, Options};
use arc_swap::ArcSwap;
use astrarium_kv::{Error, ShardId, ShardState, Space};
use astrarium_packed::{self as packed, Control, Recovered};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// fjall's file that is there, and not empty, once its folder is complete.
const ENGINE_VERSION_FILE: &str = "version";

/// Where a damaged keyspace of the set is kept, in the data folder.
const KEPT_KEYSPACE: &str = "set-entries.damaged";

/// What [`FjallEngine::accept_loss`] gave up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AcceptedLoss {
    /// Highest commit group known to have been acknowledged before.
    pub acknowledged: u64,
    /// The last group that is there. Where it is not lower, nothing was missing.
    pub found: u64,
}

/// What is known of a folder before fjall opens it.
struct Witnesses {
    /// The list of files, if it is whole and the folder's own.
    files: Option<Files>,
    /// Whose files these are, as far as that is known.
    identity: Option<FolderIdentity>,
    /// The highest group known to have been acknowledged.
    acknowledged: u64,
    /// Whether anything can have been committed.
    is_begun: bool,
}

/// A folder whose engine is open, with everything compared.
struct OpenedFolder {
    store: Store,
    history: History,
    files: Files,
    last_group: u64,
    /// Whether every keyspace tells which groups changed it; not so before the first commit of this format.
    is_followed: bool,
}

impl FjallEngine {
    /// Opens a folder for this process alone; makes it if it is not there.
    pub fn open(folder: &Path, options: Options) -> Result<FjallEngine, OpenError> {
        let path = folder.to_path_buf();
        let (folder, is_new) = Folder::take(folder)?;
        if is_new {
            create(&folder)?;
        }
        let (core, life) = open_taken(folder, options.clone())?;
        Ok(FjallEngine {
            core: ArcSwap::new(core),
            life: Mutex::new(Some(life)),
            draws: astrarium_kv::contract::Draws::default(),
            healing: Healing::new(path, options),
        })
    }

    /// Makes a folder usable that [`FjallEngine::open`] refuses with [`OpenError::LostWrites`]: cuts the journal where
    /// its wholeness ends, keeps the cut bytes in `*.damaged` files beside it, and sets the mark to what is there. The set
    /// counts as lost, since it may know more or less than the rest.
    ///
    /// Tables may hold some writes that are later than the last whole group, so what belongs together has to be made to agree
    /// by whoever knows what it means.
    pub fn accept_loss(folder: &Path) -> Result<AcceptedLoss, OpenError> {
        let (folder, is_new) = Folder::take(folder)?;
        if is_new {
            create(&folder)?;
        }
        accept_loss(&folder)
    }
}

impl FjallEngine {
    /// Sets what a folder's engine knows of shards; for a folder that nobody has open.
    pub fn set_shards(folder: &Path, states: &[(ShardId, ShardState)]) -> Result<(), OpenError> {
        let (folder, _) = Folder::take(folder)?;
        let witnesses = Witnesses::read(&folder)?;
        let mut opened = open_store(&folder, &Options::default(), witnesses)?;
        let group = opened.last_group + 1;
        let mut writer = opened.store.begin(states.len());
        for (shard, state) in states {
            writer.shard(*shard, *state);
        }
        writer.commit(group, &mut opened.history).map_err(|error| opening(folder.path(), error))?;
        opened.store.flush().map_err(|error| opening(folder.path(), error))?;
        opened.store.close().doing("empty the journals in", &folder.engine())?;
        let files = FilesKeeper::new(folder.files(), folder.engine(), opened.files).update();
        files.doing("write", &folder.files())?;
        mark::write(&folder.mark(), group, opened.history.identity)
            .doing("write the mark in", folder.path())?;
        sync_folder(folder.path()).doing("sync", folder.path())
    }
}

/// Opens a folder that is ours already.
pub(crate) fn open_taken(folder: Folder, options: Options) -> Result<(Arc<Core>, Life), OpenError> {
    let witnesses = Witnesses::read(&folder)?;
    let opened = open_store(&folder, &options, witnesses)?;
    let lost = |acknowledged, found| lost_writes(&folder, None, acknowledged, found);
    let last_change = opened.is_followed.then(|| opened.history.last_set_change());
    let source = packed::Source {
        owner: opened.history.identity.0,
        last_group: opened.last_group,
        last_change,
        journal: &opened.store,
        first_run: 1,
    };
    let files = Arc::new(SetFiles::new(folder.set()));
    let set = packed::recover(files, &options.set, set_cache_bytes(&options), &source)
        .map_err(|error| damaged_set(&folder, error))?;
    // A run can only hold what the journal held before.
    if set.merged_group() > opened.last_group {
        return Err(lost(set.merged_group(), opened.last_group));
    }
    if folder.is_of_older_format() {
        folder.write_format()?;
    }
    start(folder, options, opened, set)
}

impl Witnesses {
    fn read(folder: &Folder) -> Result<Witnesses, OpenError> {
        let files = Files::read(&folder.files()).doing("read", &folder.files())?;
        let marked = mark::read(&folder.mark())?.ok_or_else(|| unreadable_mark(folder))?;
        let mut witnesses = Witnesses {
            identity: marked.identity.or(files.as_ref().map(|files| files.identity)),
            files,
            acknowledged: marked.acknowledged,
            is_begun: true,
        };
        witnesses.settle_identity(folder)?;
        if let Some(identity) = witnesses.identity {
            witnesses.acknowledged = witnesses.acknowledged.max(last::read(&folder.last(), identity));
        }
        let has_keyspaces = witnesses.files.as_ref().is_some_and(|files| !files.keyspaces.is_empty());
        witnesses.is_begun = witnesses.acknowledged > 0 || has_keyspaces;
        Ok(witnesses)
    }

    /// Where list and mark are of different folders, the tables tell which one is foreign.
    fn settle_identity(&mut self, folder: &Folder) -> Result<(), OpenError> {
        let Some(listed) = self.files.as_ref().map(|files| files.identity) else { return Ok(()) };
        if self.identity == Some(listed) {
            return Ok(());
        }
        let bad = |bad: BadFile| error::bad_files(folder.path(), &[bad]);
        let record = inspection::persisted(&folder.engine(), None, None).map_err(bad)?.record;
        let own = record.and_then(|record| record.lineage).map(|lineage| lineage.identity);
        if own == self.identity {
            tracing::warn!("FILES belongs to another data folder; it is written anew");
            self.files = None;
            return Ok(());
        }
        Err(bad(BadFile { path: folder.mark(), what: "belongs to another data folder" }))
    }
}

fn accept_loss(folder: &Folder) -> Result<AcceptedLoss, OpenError> {
    let marked = mark::read(&folder.mark())?;
    let files = Files::read(&folder.files()).doing("read", &folder.files())?;
    let identity = files.as_ref().map(|files| files.identity).or(marked.and_then(|marked| marked.identity));
    let mut acknowledged = marked.map_or(0, |marked| marked.acknowledged);
    if let Some(identity) = identity {
        acknowledged = acknowledged.max(last::read(&folder.last(), identity));
    }
    let engine = folder.engine();
    let mut loss = AcceptedLoss { acknowledged, found: u64::MAX };
    let has_keyspaces = files.as_ref().is_some_and(|files| !files.keyspaces.is_empty());
    let is_begun = acknowledged > 0 || has_keyspaces;
    let witnesses = Witnesses { files, identity, acknowledged: 0, is_begun };
    if engine.try_exists().doing("look for", &engine)? {
        let journals = recovery::judge(&engine, acknowledged, identity).doing("scan", &engine)?;
        if let JournalVerdict::Lost { acknowledged, found, .. } = journals.verdict {
            loss = AcceptedLoss { acknowledged, found };
        }
        recovery::cut(&engine, identity).doing("cut the journals in", &engine)?;
        if journal::numbers(&engine).doing("list", &engine)?.is_empty() {
            make_journal(&engine, witnesses.files.as_ref())?;
        }
    }
    let opened = open_after_loss(folder, witnesses)?;
    loss.found = loss.found.min(opened.last_group);
    // A list of runs that cannot be read is for the next opening to report.
    loss.acknowledged =
        loss.acknowledged.max(packed::merged_group(&SetFiles::new(folder.set())).unwrap_or(0));
    settle(folder, opened, loss.acknowledged)?;
    Ok(loss)
}

/// Opens what is left after a loss was accepted: what is missing or newer is not compared any more.
fn open_after_loss(folder: &Folder, witnesses: Witnesses) -> Result<OpenedFolder, OpenError> {
    let options = Options::default();
    if witnesses.is_begun {
        give_up_damaged(folder, witnesses.files.as_ref())?;
    }
    let store = open_fjall(folder, &options, witnesses.files.as_ref())?;
    opened(folder, store, witnesses)
}

/// Gives up damaged files: keyspaces that can be made anew from documents, and single tables of documents. Without definitions,
/// or without the list of its tables, nothing can be done.
fn give_up_damaged(folder: &Folder, files: Option<&Files>) -> Result<(), OpenError> {
    let engine = folder.engine();
    if !engine.is_dir() {
        return Err(error::bad_files(folder.path(), &[BadFile { path: engine, what: "is missing" }]));
    }
    inspection::mend(&engine)?;
    let found = inspection::inspect(&engine, files, Depth::Whole);
    set_keyspaces_aside(folder, &found.bad_index)?;
    let mut dropped: BTreeMap<PathBuf, Vec<u64>> = BTreeMap::new();
    for bad in found.bad {
        match inspection::loss_of(&engine, files, &bad) {
            Some(Loss::Keyspace(path)) => {
                if path.try_exists().doing("look for", &path)? {
                    std::fs::remove_dir_all(&path).doing("give up", &path)?;
                }
            }
            Some(Loss::Table { keyspace, number }) => dropped.entry(keyspace).or_default().push(number),
            None => return Err(error::bad_files(folder.path(), &[bad])),
        }
    }
    for (keyspace, numbers) in dropped {
        drop_tables(&keyspace, &numbers).doing("take tables out of", &keyspace)?;
    }
    Ok(())
}

/// Lets numbers go on behind the highest one ever seen, in an empty journal, and makes every keyspace agree with that.
fn settle(folder: &Folder, opened: OpenedFolder, acknowledged: u64) -> Result<(), OpenError> {
    let OpenedFolder { store, mut history, mut files, last_group, .. } = opened;
    let next = last_group.max(acknowledged) + 1;
    let engine = folder.engine();
    let mut writer = store.begin(0);
    writer.follow_spaces();
    writer.commit(next, &mut history).map_err(|error| opening(folder.path(), error))?;
    store.flush().map_err(|error| opening(folder.path(), error))?;
    store.close().doing("empty the journals in", &engine)?;
    let set = folder.set();
    if set.try_exists().doing("look for", &set)? {
        set_files::move_aside(&set).doing("set aside", &set)?;
    }
    files.tables.clear();
    FilesKeeper::new(folder.files(), engine, files).update().doing("write", &folder.files())?;
    mark::write(&folder.mark(), next, history.identity).doing("write the mark in", folder.path())?;
    if folder.is_of_older_format() {
        folder.write_format()?;
    }
    sync_folder(folder.path()).doing("sync", folder.path())
}

/// The files of a new folder, FORMAT last: until it is there, the folder counts as new.
fn create(folder: &Folder) -> Result<(), OpenError> {
    let identity = FolderIdentity::new();
    mark::write(&folder.mark(), 0, identity).doing("write the mark in", folder.path())?;
    Files::of(identity).write(&folder.files()).doing("write", &folder.files())?;
    folder.write_format()?;
    // A path of one name has an empty parent: the present folder.
    let parent =
        folder.path().parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    sync_folder(parent).doing("sync", parent)
}

/// Everything up to an open fjall that lacks nothing.
fn open_store(folder: &Folder, options: &Options, witnesses: Witnesses) -> Result<OpenedFolder, OpenError> {
    let acknowledged = witnesses.acknowledged;
    let journaled = check_journals(folder, &witnesses)?;
    let store = open_fjall(folder, options, witnesses.files.as_ref())?;
    let opened = opened(folder, store, witnesses)?;
    let recovered = opened.last_group;
    if acknowledged > recovered {
        return Err(lost_writes(folder, None, acknowledged, recovered));
    }
    // A table can only hold what the journal held before. If it knows of later groups, the journal lost them, and
    // with them what other keyspaces had not yet in tables. The other way round, fjall did not take a whole batch.
    if let Some(journaled) = journaled.filter(|journaled| *journaled != recovered) {
        return Err(lost_writes(folder, None, journaled.max(recovered), journaled.min(recovered)));
    }
    if opened.is_followed {
        check_spaces(folder, &opened)?;
    }
    Ok(opened)
}

/// Looks at all files of a folder that was in use, cuts a torn end, and gives the last group that is in a journal, if one is.
fn check_journals(folder: &Folder, witnesses: &Witnesses) -> Result<Option<u64>, OpenError> {
    let engine = folder.engine();
    let files = witnesses.files.as_ref();
    if witnesses.is_begun {
        look_at_files(folder, files)?;
    } else {
        if engine.try_exists().doing("look for", &engine)? {
            remove_unfinished(&engine)?;
        }
        if !engine.try_exists().doing("look for", &engine)? {
            return Ok(None);
        }
    }
    let journals = recovery::judge(&engine, witnesses.acknowledged, witnesses.identity)
        .doing("scan the journals in", &engine)?;
    if !journals.foreign.is_empty() {
        return Err(error::bad_files(folder.path(), &journals.foreign));
    }
    check_tables_before(folder, witnesses, &journals)?;
    match journals.verdict {
        JournalVerdict::Clean { last_group } => Ok(last_group),
        JournalVerdict::TornEnd { last_group } => {
            recovery::cut(&engine, witnesses.identity).doing("cut the journals in", &engine)?;
            Ok(last_group)
        }
        JournalVerdict::Lost { acknowledged, found, file } => {
            Err(lost_writes(folder, Some(file), acknowledged, found))
        }
    }
}

/// Names files that are missing or not what was written. Those of the index are set aside instead.
fn look_at_files(folder: &Folder, files: Option<&Files>) -> Result<(), OpenError> {
    let engine = folder.engine();
    if !engine.is_dir() {
        return Err(error::bad_files(folder.path(), &[BadFile { path: engine, what: "is missing" }]));
    }
    inspection::mend(&engine)?;
    let found = inspection::inspect(&engine, files, Depth::Known);
    if !found.bad.is_empty() {
        return Err(error::bad_files(folder.path(), &found.bad));
    }
    set_keyspaces_aside(folder, &found.bad_index)
}

fn set_keyspaces_aside(folder: &Folder, bad: &[(PathBuf, BadFile)]) -> Result<(), OpenError> {
    let kept = folder.path().join(KEPT_KEYSPACE);
    for (keyspace, bad) in bad {
        if !keyspace.try_exists().doing("look for", keyspace)? {
            continue;
        }
        tracing::error!(file = %bad.path.display(), damage = bad.what, "index entries are damaged and set aside");
        if kept.try_exists().doing("look for", &kept)? {
            std::fs::remove_dir_all(&kept).doing("remove", &kept)?;
        }
        std::fs::rename(keyspace, &kept).doing("set aside", keyspace)?;
    }
    Ok(())
}

/// Checks that tables hold everything from before the first group in a journal.
fn check_tables_before(folder: &Folder, witnesses: &Witnesses, journals: &Journals) -> Result<(), OpenError> {
    let engine = folder.engine();
    let files = witnesses.files.as_ref();
    let read = || {
        inspection::persisted(&engine, files, witnesses.identity)
            .map_err(|bad| error::bad_files(folder.path(), &[bad]))
    };
    match &journals.first {
        Some((group, Some(lineage), path)) => {
            let tables = read()?;
            if *group <= 1 {
                return Ok(());
            }
            let group_in_tables = tables.record.map_or(0, |record| record.group);
            let lacks = tables.spaces.iter().zip(lineage.before).any(|(found, before)| *found < before);
            if lacks || group_in_tables + 1 < *group {
                let file = missing_before(&engine, path);
                let found = group_in_tables.min(group - 2);
                return Err(lost_writes(folder, Some(file), group - 1, found));
            }
        }
        None if journals.count == 0 && witnesses.is_begun => {
            let tables = read()?;
            let found = tables.record.map_or(0, |record| record.group);
            let changes = tables.record.and_then(|record: GroupRecord| {
                record.lineage.map(|lineage| lineage.last_changes(record.group))
            });
            let lacks = |changes: [u64; FOLLOWED_COUNT]| {
                tables.spaces.iter().zip(changes).any(|(found, change)| *found < change)
            };
            if found < witnesses.acknowledged || changes.is_some_and(lacks) {
                let file = engine.join(journal::name_of(last_journal(files)));
                return Err(lost_writes(folder, Some(file), witnesses.acknowledged.max(found + 1), found));
            }
            // Everything is in tables, so the journal was empty.
            make_journal(&engine, files)?;
        }
        _ => {}
    }
    Ok(())
}

/// The journal before one.
fn missing_before(engine: &Path, path: &Path) -> PathBuf {
    let number = path.file_stem().and_then(|name| name.to_str()).and_then(|name| name.parse::<u64>().ok());
    engine.join(journal::name_of(number.unwrap_or(0).saturating_sub(1)))
}

fn last_journal(files: Option<&Files>) -> u64 {
    files.and_then(|files| files.journals.last().copied()).unwrap_or(0)
}

/// An empty journal. Without any, fjall would not learn its last sequence number, and show nothing of its tables.
fn make_journal(engine: &Path, files: Option<&Files>) -> Result<(), OpenError> {
    let path = engine.join(journal::name_of(last_journal(files)));
    std::fs::write(&path, []).doing("write", &path)?;
    sync_folder(engine).doing("sync", engine)
}

/// fjall cannot go on with a folder whose making was cut short. Before its version file is complete nothing can have
/// been committed, so it is made anew.
fn remove_unfinished(engine: &Path) -> Result<(), OpenError> {
    let is_complete = std::fs::metadata(engine.join(ENGINE_VERSION_FILE)).is_ok_and(|file| file.len() > 0);
    if is_complete { Ok(()) } else { std::fs::remove_dir_all(engine).doing("remove the unfinished", engine) }
}

/// Opens fjall. Where it finds damage that a first look did not, every file is read to name it; a keyspace of the index is set
/// aside instead.
fn open_fjall(folder: &Folder, options: &Options, files: Option<&Files>) -> Result<Store, OpenError> {
    let error = match try_fjall(folder, options) {
        Ok(store) => return Ok(store),
        Err(error) => error,
    };
    if !matches!(error, OpenError::Damaged { .. }) {
        return Err(error);
    }
    let found = inspection::inspect(&folder.engine(), files, Depth::Whole);
    if !found.bad.is_empty() {
        return Err(error::bad_files(folder.path(), &found.bad));
    }
    if found.bad_index.is_empty() {
        return Err(error);
    }
    set_keyspaces_aside(folder, &found.bad_index)?;
    try_fjall(folder, options)
}

fn try_fjall(folder: &Folder, options: &Options) -> Result<Store, OpenError> {
    let engine = folder.engine();
    // fjall trusts its files in places, and ends in a panic where they are not what they should be.
    match std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| Store::open(&engine, options))) {
        Ok(outcome) => outcome.map_err(|error| opening(folder.path(), error)),
        Err(_) => Err(OpenError::Damaged {
            folder: folder.path().to_path_buf(),
            what: "a file of the engine is not what was written".to_owned(),
        }),
    }
}

/// What an open fjall says of itself.
fn opened(folder: &Folder, store: Store, witnesses: Witnesses) -> Result<OpenedFolder, OpenError> {
    let damaged =
        |error: Error| OpenError::Damaged { folder: folder.path().to_path_buf(), what: plain(&error) };
    let record = store.last_record().map_err(damaged)?;
    let last_group = record.map_or(0, |record| record.group);
    let lineage = record.and_then(|record| record.lineage);
    let identity = lineage.map(|lineage| lineage.identity);
    if let (Some(found), Some(expected)) = (identity, witnesses.identity)
        && found != expected
    {
        let path = folder.engine();
        return Err(error::bad_files(
            folder.path(),
            &[BadFile { path, what: "belongs to another data folder" }],
        ));
    }
    let identity = identity.or(witnesses.identity).unwrap_or_else(FolderIdentity::new);
    let last_changes = lineage.map_or([0; FOLLOWED_COUNT], |lineage| lineage.last_changes(last_group));
    let mut files = witnesses.files.unwrap_or_else(|| Files::of(identity));
    files.keyspaces = store.keyspace_names().collect();
    Ok(OpenedFolder {
        history: History { identity, last_changes },
        store,
        files,
        last_group,
        is_followed: lineage.is_some(),
    })
}

/// Each space says which group changed it last; the last group says the same, unless a keyspace is not what it was.
fn check_spaces(folder: &Folder, opened: &OpenedFolder) -> Result<(), OpenError> {
    let mut bad = Vec::new();
    for (space, name) in Space::ALL.into_iter().zip(SPACE_NAMES) {
        let expected = opened.history.last_changes[space as usize];
        let found = opened.store.space_record(space).map_err(|error| OpenError::Damaged {
            folder: folder.path().to_path_buf(),
            what: plain(&error),
        })?;
        let what = match found {
            Some(found) if found.identity != opened.history.identity => "belongs to another data folder",
            found if found.map_or(0, |found| found.group) != expected => {
                "holds other writes than the rest of the folder"
            }
            _ => continue,
        };
        let number = opened.files.keyspaces.iter().find(|(_, other)| *other == name).map_or(0, |(id, _)| *id);
        let path = folder.engine().join(crate::files::KEYSPACES_FOLDER).join(number.to_string());
        bad.push(BadFile { path, what });
    }
    if bad.is_empty() { Ok(()) } else { Err(error::bad_files(folder.path(), &bad)) }
}

/// The share of the cache that blocks of the set get.
pub(crate) fn set_cache_bytes(options: &Options) -> u64 {
    options.cache_bytes / 8 * 3
}

/// The share of the cache that single values get; what is left is for fjall's blocks.
pub(crate) fn value_cache_bytes(options: &Options) -> u64 {
    options.cache_bytes / 4
}

fn lost_writes(folder: &Folder, file: Option<PathBuf>, acknowledged: u64, found: u64) -> OpenError {
    let numbers = journal::numbers(&folder.engine()).unwrap_or_default();
    let newest = || folder.engine().join(journal::name_of(numbers.last().copied().unwrap_or(0)));
    let file = file.unwrap_or_else(newest);
    let file = file.strip_prefix(folder.path()).unwrap_or(&file).to_path_buf();
    OpenError::LostWrites { folder: folder.path().to_path_buf(), file, acknowledged, found }
}

fn plain(error: &Error) -> String {
    match error {
        Error::Corruption { what } => what.clone(),
        other => other.to_string(),
    }
}

fn damaged_set(folder: &Folder, error: packed::Error) -> OpenError {
    let folder = folder.path().to_path_buf();
    match error {
        packed::Error::Damaged { what } => OpenError::Damaged { folder, what },
        other => OpenError::Io { doing: "open the index in", path: folder, source: io::Error::other(other) },
    }
}

fn unreadable_mark(folder: &Folder) -> OpenError {
    let what = "ACKNOWLEDGED is missing or not whole, so it is not known whether writes are missing";
    OpenError::Damaged { folder: folder.path().to_path_buf(), what: what.to_owned() }
}

fn start(
    folder: Folder,
    options: Options,
    opened: OpenedFolder,
    set: Recovered,
) -> Result<(Arc<Core>, Life), OpenError> {
    let OpenedFolder { store, history, files, last_group, .. } = opened;
    let store = Arc::new(store);
    let keeper = FilesKeeper::new(folder.files(), folder.engine(), files);
    let mark = Arc::new(Mark::new(folder.mark(), keeper, last_group));
    mark.update_files().doing("write", &folder.files())?;
    let last = Last::open(&folder.last(), history.identity);
    let core = Arc::new(Core {
        queue: CommitQueue::default(),
        health: EngineHealth::default(),
        current: ArcSwap::from_pointee(FjallSnapshot::open(Arc::clone(&store), last_group, set.view())),
        publishing: Mutex::default(),
        set: Control::new(options.set, &set.view(), set.merged_group()),
        reclaim: ReclaimControl::default(),
        shards: KnownShards::default(),
        watchers: Arc::default(),
        mark: Arc::clone(&mark),
        times: TimeCounters::default(),
        commits: 0.into(),
        conflicts: 0.into(),
        groups: 0.into(),
        free_space: FreeSpace::new(folder.path().to_path_buf(), options),
        presence: PresenceCheck::new(folder.presence()),
        is_closed: false.into(),
    });
    let committer = Committer::new(Arc::clone(&core), store, last_group, history, last);
    let merger = set.into_merger(Arc::<Core>::clone(&core));
    let path = folder.path().to_path_buf();
    let spawn = |name: &str, work: Box<dyn FnOnce() + Send>| {
        std::thread::Builder::new().name(name.to_owned()).spawn(work).doing("start a thread for", &path)
    };
    let committer = spawn("astrarium-commit", Box::new(move || committer.run()))?;
    // The mark is behind what was recovered when the last one was not written.
    let marker = spawn("astrarium-mark", Box::new(move || mark.run(0)))?;
    let merger = std::thread::Builder::new()
        .name("astrarium-merge".to_owned())
        .spawn(move || merger.run())
        .doing("start a thread for", &path)?;
    let reclaimer = Reclaimer::new(Arc::clone(&core));
    let reclaimer = spawn("astrarium-reclaim", Box::new(move || reclaimer.run()))?;
    Ok((core, Life { committer, marker, merger, reclaimer, folder }))
}
