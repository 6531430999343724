//! What fjall does without promising it, asked of fjall alone: `docs/what-fjall-does.md` says what we make of each, and which
//! tests of the whole engine notice the rest.

use crate::fixture::{SHARD, open, write};
use astrarium_kv::contract::shard_key;
use astrarium_kv::{Engine, Space};
use fjall::{
    AbstractTree, CompressionType, Database, Keyspace, KeyspaceCreateOptions, PersistMode, Readable,
};
use lsm_tree::compaction::filter::{CompactionFilter, Context, Factory, ItemAccessor, Verdict};
use lsm_tree::{SeqNo, SequenceNumberCounter};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, Mutex, mpsc};
use std::thread::ThreadId;
use std::time::{Duration, Instant};

/// Far longer than anything here takes.
const PATIENCE: Duration = Duration::from_mins(5);

fn database(folder: &Path) -> Database {
    // As we have it.
    Database::builder(folder).journal_compression(CompressionType::None).open().unwrap()
}

fn keyspace(database: &Database, name: &str) -> Keyspace {
    // Larger than what is written here: a memtable is full when a test says so.
    let options = || KeyspaceCreateOptions::default().max_memtable_size(512 << 20);
    database.keyspace(name, options).unwrap()
}

/// Has everything in a keyspace go into a table.
fn flush(keyspace: &Keyspace) {
    keyspace.rotate_memtable().unwrap();
    wait_until("the memtable is written out", || keyspace.sealed_memtable_count() == 0);
}

fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn names(folder: &Path) -> BTreeSet<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

fn journals(folder: &Path) -> Vec<String> {
    names(folder)
        .into_iter()
        .filter(|name| name.split_once('.').is_some_and(|(_, end)| end == "jnl"))
        .collect()
}

fn visible(database: &Database, keyspace: &Keyspace, key: &str) -> bool {
    database.snapshot().get(keyspace, key).unwrap().is_some()
}

#[test]
fn files_have_the_names_that_are_looked_for() {
    let folder = tempfile::tempdir().unwrap();
    let engine = open(folder.path());
    write(&engine, 1, 10).unwrap();
    engine.close().unwrap();
    let engine = folder.path().join("engine");
    let set = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<_>>();
    assert_eq!(names(&engine), set(&["0.jnl", "keyspaces", "lock", "version"]));
    assert_eq!(std::fs::read(engine.join("version")).unwrap(), b"FJL\x03");
    // Its own, then ours in the order in which they are made.
    let keyspaces = engine.join("keyspaces");
    assert_eq!(names(&keyspaces), set(&["0", "1", "2", "3", "4", "5"]));
    for number in names(&keyspaces) {
        let found = names(&keyspaces.join(&number));
        let versions = found
            .iter()
            .filter(|name| name.strip_prefix('v').is_some_and(|version| version.parse::<u64>().is_ok()));
        assert!(versions.count() > 0 && found.contains("current") && found.contains("tables"), "{found:?}");
        let tables = names(&keyspaces.join(&number).join("tables"));
        assert!(tables.iter().all(|name| name.parse::<u64>().is_ok()), "{number}: {tables:?}");
    }
}

/// Nothing but a sealed journal tells of what is in no table; and a journal that nobody lets go fills the disk.
#[test]
fn a_journal_stays_until_all_its_keyspaces_are_in_tables() {
    let folder = tempfile::tempdir().unwrap();
    let database = database(folder.path());
    let [large, dropped, late] = ["large", "dropped", "late"].map(|name| keyspace(&database, name));
    let length = |name: &str| std::fs::metadata(folder.path().join(name)).unwrap().len();
    assert_eq!(length("0.jnl"), 64 << 20, "zeros, from the beginning");
    dropped.insert("a", "").unwrap();
    late.insert("a", "").unwrap();
    let value = vec![1; 1 << 20];
    for number in 0..63_u8 {
        large.insert([number], &value).unwrap();
    }
    flush(&large);
    wait_until("64 MB end a journal", || journals(folder.path()) == ["0.jnl", "1.jnl"]);
    assert_eq!(length("1.jnl"), 64 << 20);
    flush(&dropped);
    dropped.tree.drop_range::<&str, _>(..).unwrap();
    assert_eq!(dropped.table_count(), 0);
    flush(&late);
    // Looked at with every table that is written.
    for number in [100_u8, 101] {
        large.insert([number], "").unwrap();
        flush(&large);
    }
    assert_eq!(journals(folder.path()), ["0.jnl", "1.jnl"], "a keyspace whose tables went holds it");
    // Hence the anchor of `Store::drop_set_blocks`.
    dropped.insert("anchor", "").unwrap();
    flush(&dropped);
    wait_until("the journal goes", || journals(folder.path()) == ["1.jnl"]);
}

#[test]
fn tables_are_shown_only_with_a_journal() {
    let folder = tempfile::tempdir().unwrap();
    let fill = database(folder.path());
    let filled = keyspace(&fill, "a");
    filled.insert("key", "value").unwrap();
    flush(&filled);
    drop((filled, fill));
    let journal = folder.path().join("0.jnl");
    let is_shown = || {
        let database = database(folder.path());
        visible(&database, &keyspace(&database, "a"), "key")
    };
    // As closing leaves it.
    std::fs::write(&journal, []).unwrap();
    assert!(is_shown(), "an empty journal is enough");
    std::fs::remove_file(&journal).unwrap();
    assert!(!is_shown(), "without one, the last sequence number is not looked for");
}

#[test]
fn what_is_older_than_a_table_is_not_replayed() {
    let folder = tempfile::tempdir().unwrap();
    let fill = database(folder.path());
    let filled = keyspace(&fill, "a");
    for key in ["dropped", "kept"] {
        filled.insert(key, "value").unwrap();
        flush(&filled);
    }
    filled.insert("newest", "value").unwrap();
    filled.tree.drop_range("dropped"..="dropped").unwrap();
    drop((filled, fill));
    assert_eq!(journals(folder.path()), ["0.jnl"], "the journal has all three");
    let database = database(folder.path());
    let filled = keyspace(&database, "a");
    assert_eq!(
        ["dropped", "kept", "newest"].map(|key| visible(&database, &filled, key)),
        [false, true, true]
    );
}

#[test]
fn a_range_is_dropped_by_whole_tables() {
    let folder = tempfile::tempdir().unwrap();
    let database = database(folder.path());
    let keyspace = keyspace(&database, "a");
    for keys in [["a1", "a2"], ["a3", "b1"]] {
        for key in keys {
            keyspace.insert(key, "").unwrap();
        }
        flush(&keyspace);
    }
    keyspace.insert("a4", "").unwrap();
    keyspace.tree.drop_range("a".."b").unwrap();
    let left: Vec<_> = keyspace.iter().map(|entry| entry.key().unwrap().to_vec()).collect();
    assert_eq!(left, [b"a3", b"a4", b"b1"], "not what is in memory, nor in a table with others");
}

#[test]
fn a_tree_alone_tells_what_its_tables_hold() {
    let folder = tempfile::tempdir().unwrap();
    let fill = database(folder.path());
    let filled = keyspace(&fill, "a");
    filled.insert("key", "old").unwrap();
    flush(&filled);
    filled.insert("key", "new").unwrap();
    drop((filled, fill));
    let before = journals(folder.path());
    let (counter, visible) = (SequenceNumberCounter::default(), SequenceNumberCounter::default());
    let tree = lsm_tree::Config::new(folder.path().join("keyspaces/1"), counter, visible).open().unwrap();
    assert_eq!(tree.get("key", SeqNo::MAX).unwrap().as_deref(), Some(&b"old"[..]));
    drop(tree);
    assert_eq!(journals(folder.path()), before);
    let database = database(folder.path());
    let filled = keyspace(&database, "a");
    assert_eq!(filled.get("key").unwrap().as_deref(), Some(&b"new"[..]), "and changes nothing");
}

/// Waiting for fjall must not wait for ever: this is how `Store::wait_for_room` and `Store::flush` learn that it is in vain.
#[test]
fn failed_background_work_is_told_by_a_persist() {
    let folder = tempfile::tempdir().unwrap();
    let database = database(folder.path());
    let keyspace = keyspace(&database, "a");
    keyspace.insert("key", "value").unwrap();
    database.persist(PersistMode::Buffer).unwrap();
    std::fs::remove_dir_all(folder.path().join("keyspaces/1/tables")).unwrap();
    keyspace.rotate_memtable().unwrap();
    wait_until("the failure is told", || {
        matches!(database.persist(PersistMode::Buffer), Err(fjall::Error::Poisoned))
    });
    assert!(
        matches!(keyspace.insert("other", ""), Err(fjall::Error::Poisoned)),
        "nothing is written any more"
    );
    assert_eq!(keyspace.sealed_memtable_count(), 1, "so who waits for this count alone waits for ever");
    assert!(visible(&database, &keyspace, "key"), "reads go on");
}

/// We stop at two full memtables, and one group can add two more; fjall's own wait has no end when its threads have failed.
#[test]
fn three_full_memtables_stop_no_write() {
    let folder = tempfile::tempdir().unwrap();
    let database = Database::builder(folder.path()).worker_threads_unchecked(0).open().unwrap();
    let keyspace = keyspace(&database, "a");
    let (done, is_done) = mpsc::channel();
    let writer = std::thread::spawn(move || {
        for number in 0..3_u8 {
            let mut batch = database.batch();
            batch.insert(&keyspace, [number], "");
            batch.commit().unwrap();
            keyspace.rotate_memtable().unwrap();
        }
        assert_eq!(keyspace.sealed_memtable_count(), 3);
        let mut batch = database.batch();
        batch.insert(&keyspace, "last", "");
        batch.commit().unwrap();
        done.send(()).unwrap();
    });
    is_done.recv_timeout(PATIENCE).expect("the write does not wait");
    writer.join().unwrap();
}

/// Ends every compaction, and notes where it ran.
struct Ending(Arc<Mutex<Vec<ThreadId>>>);

impl Factory for Ending {
    fn name(&self) -> &'static str {
        "ending"
    }

    fn make_filter(&self, _: &Context) -> Box<dyn CompactionFilter> {
        self.0.lock().unwrap().push(std::thread::current().id());
        Box::new(Ending(Arc::clone(&self.0)))
    }
}

impl CompactionFilter for Ending {
    fn filter_item(&mut self, item: ItemAccessor<'_>, _: &Context) -> lsm_tree::Result<Verdict> {
        match &item.key()[..] {
            b"destroyed" => Ok(Verdict::Destroy),
            b"ending" => Err(std::io::Error::other("given up").into()),
            _ => Ok(Verdict::Keep),
        }
    }
}

/// The reclaimer begins compactions, gives them up by an error of the filter, and tells by the thread which ones are its own.
#[test]
fn a_filter_runs_where_the_compaction_was_begun_and_may_end_it() {
    let folder = tempfile::tempdir().unwrap();
    let threads = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&threads);
    let database = Database::builder(folder.path())
        .with_compaction_filter_factories(Arc::new(move |name| {
            (name == "a").then(|| Arc::new(Ending(Arc::clone(&noted))) as Arc<dyn Factory>)
        }))
        .open()
        .unwrap();
    let keyspace = keyspace(&database, "a");
    let keys = || keyspace.iter().map(|entry| entry.key().unwrap().to_vec()).collect::<Vec<_>>();
    for key in ["destroyed", "ending", "other"] {
        keyspace.insert(key, "").unwrap();
    }
    flush(&keyspace);
    keyspace.major_compact().expect_err("the filter's error comes back");
    assert!(threads.lock().unwrap().contains(&std::thread::current().id()));
    assert_eq!(keys(), [&b"destroyed"[..], b"ending", b"other"], "nothing has changed");
    database.persist(PersistMode::Buffer).expect("fjall does not count it as a failure of its own");
    keyspace.remove("ending").unwrap();
    flush(&keyspace);
    // The removal has the key too, so it goes by a table.
    keyspace.tree.drop_range::<&str, _>(..).unwrap();
    for key in ["destroyed", "other"] {
        keyspace.insert(key, "").unwrap();
    }
    flush(&keyspace);
    keyspace.major_compact().unwrap();
    assert_eq!(keys(), [b"other"]);
}

/// Tables are found, and told with the keys that they hold, while fjall has them open.
#[test]
fn a_damaged_table_is_told_with_its_keys() {
    let folder = tempfile::tempdir().unwrap();
    let engine = open(folder.path());
    for number in 1..=9 {
        write(&engine, number, 1000).unwrap();
    }
    engine.close().unwrap();
    let engine = open(folder.path());
    // Keyspace 2 has the bodies; what is altered here is no part of what opening compares.
    let tables = folder.path().join("engine/keyspaces/2/tables");
    let table = tables.join(names(&tables).first().unwrap());
    let mut bytes = std::fs::read(&table).unwrap();
    bytes[100] ^= 4;
    std::fs::write(&table, bytes).unwrap();
    while engine.check_next_file() {}
    let [damage] = &engine.damages()[..] else { panic!("{:?}", engine.damages()) };
    assert_eq!(damage.space, Some(Space::Body));
    assert!(damage.file.contains("engine/keyspaces/2/tables/"), "{}", damage.file);
    let key = |number: u64| shard_key(SHARD, &number.to_be_bytes());
    assert!(damage.first <= key(1) && damage.last >= key(9), "{damage:?}");
}

/// The notes are about one version of fjall, and name tests that exist.
#[test]
fn the_notes_are_about_the_version_in_use() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |path: &Path| std::fs::read_to_string(path).unwrap();
    let notes = read(&here.join("../../docs/what-fjall-does.md"));
    let lock = read(&here.join("../../Cargo.lock"));
    for name in ["fjall", "lsm-tree"] {
        let entry = lock.split("[[package]]").find(|entry| entry.contains(&format!("name = \"{name}\"\n")));
        let version = entry.and_then(|entry| entry.split("version = \"").nth(1)?.split('"').next()).unwrap();
        assert!(notes.contains(&format!("{name} {version}")), "the notes are not about {name} {version}");
    }
    // In a table, tests are named as `module::test`.
    let named = notes.lines().filter(|line| line.starts_with('|')).flat_map(|line| line.split('`'));
    let named: Vec<_> = named.filter_map(|name| name.split_once("::")).collect();
    assert!(named.len() > 30, "{named:?}");
    for (module, test) in named {
        let path = here.join(format!("tests/engine/{module}.rs"));
        assert!(read(&path).contains(&format!("fn {test}(")), "{module}::{test} is no test");
    }
}
