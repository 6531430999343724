//! The packed form's other half: blocks of groups are merged into runs, which are rows of 64 KB, over a connection of their own.
//!
//! The merging is that of the embedded engine (`packed`), with a run for every 2 MB of blocks and four runs merged into one. What is
//! written here stays in memory for the next merge; whoever opens the set elsewhere reads rows.
//! Invariants
//! - Blocks are deleted once they are in a run, and are read over the connection before: whoever merges need not be who wrote
//!   them. Their space is given back at once.

use super::forms::{OWNER, SHARD, connect};
use crate::postgres::client::{Client, Statement};
use anyhow::Context as _;
use astrarium_packed::{
    Blob, BlobWriter, Blobs, Control, DamageSignal, Error, GroupBlock, Journal, Merger, Publisher,
    ReplaceError, SetOptions, SetView, Source, recover,
};
use bytes::Bytes;
use parking_lot::Mutex;
use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::JoinHandle;

/// Bytes of blocks that make a run.
const RUN_BYTES: u64 = 2 << 20;
/// Bytes of a run in one row.
pub(super) const CHUNK_BYTES: usize = 64 << 10;
/// Rows that are sent at once.
const CHUNKS_AT_ONCE: usize = 16;
/// Blocks of runs that readers keep.
const CACHE_BYTES: u64 = 256 << 20;

/// The connection of a set, its statements, and what it has read of runs.
#[derive(Clone)]
pub(super) struct Rows(Arc<Mutex<Connected>>);

struct Connected {
    client: Client,
    statements: BTreeMap<&'static str, Statement>,
    chunks: HashMap<(i64, u32), Bytes>,
}

const READ_MANIFEST: &str = "SELECT content FROM set_manifest WHERE shard = $1";
const WRITE_MANIFEST: &str = "INSERT INTO set_manifest VALUES ($1, $2) \
                              ON CONFLICT (shard) DO UPDATE SET content = excluded.content";
const LIST: &str = "SELECT DISTINCT number FROM set_blob WHERE shard = $1";
const LENGTH: &str =
    "SELECT coalesce(sum(octet_length(bytes)), 0)::int8 FROM set_blob WHERE shard = $1 AND number = $2";
pub(super) const READ_CHUNK: &str = "SELECT bytes FROM set_blob WHERE shard = $1 AND number = $2 AND n = $3";
const WRITE_CHUNK: &str = "INSERT INTO set_blob VALUES ($1, $2, $3, $4)";
const REMOVE: &str = "DELETE FROM set_blob WHERE shard = $1 AND number = $2";
const READ_BLOCKS: &str = "SELECT grp, block FROM set_group WHERE shard = $1 AND grp > $2 ORDER BY grp";
const READ_OLD_BLOCKS: &str = "SELECT grp, block FROM set_group WHERE shard = $1 AND grp <= $2 ORDER BY grp";
const REMOVE_BLOCKS: &str = "DELETE FROM set_group WHERE shard = $1 AND grp <= $2";
/// So that the next blocks take the place of these, and not after the minute or more that autovacuum waits.
const VACUUM: &str = "VACUUM (TRUNCATE false) set_group";

impl Rows {
    pub(super) fn connect(address: SocketAddr) -> anyhow::Result<Rows> {
        let client = connect(address)?;
        let connected = Connected { client, statements: BTreeMap::new(), chunks: HashMap::new() };
        Ok(Rows(Arc::new(Mutex::new(connected))))
    }

    /// The numbers of all runs, and how many rows each has.
    pub(super) fn runs(&self) -> anyhow::Result<Vec<(i64, i32)>> {
        let sql = "SELECT number, count(*)::int4 FROM set_blob WHERE shard = $1 GROUP BY number";
        let rows = self.0.lock().ask(sql, &[])?;
        rows.iter().map(|row| Ok((int8(&row[0])?, i32::from_be_bytes(row[1][..].try_into()?)))).collect()
    }

    /// How many rows of runs are kept.
    pub(super) fn chunk_count(&self) -> usize {
        self.0.lock().chunks.len()
    }

    fn ask(&self, sql: &'static str, values: &[Vec<u8>]) -> Result<Vec<Vec<Vec<u8>>>, Error> {
        self.0.lock().ask(sql, values).map_err(unavailable)
    }

    fn blocks(&self, sql: &'static str, group: u64) -> Result<Vec<(u64, Bytes)>, Error> {
        let rows = self.ask(sql, &[group.to_be_bytes().to_vec()])?;
        let read = |row: Vec<Vec<u8>>| -> anyhow::Result<(u64, Bytes)> {
            let [group, block] = row.try_into().ok().context("two columns")?;
            Ok((int8(&group)? as u64, block.into()))
        };
        rows.into_iter().map(read).collect::<anyhow::Result<_>>().map_err(unavailable)
    }
}

impl Connected {
    fn ask(&mut self, sql: &'static str, values: &[Vec<u8>]) -> anyhow::Result<Vec<Vec<Vec<u8>>>> {
        self.prepare(sql)?;
        let values: Vec<_> =
            std::iter::once(SHARD.to_be_bytes().to_vec()).chain(values.iter().cloned()).collect();
        self.client.run_binary(&[(&self.statements[sql], &values)])
    }

    fn prepare(&mut self, sql: &'static str) -> anyhow::Result<()> {
        if !self.statements.contains_key(sql) {
            self.statements.insert(sql, self.client.prepare(sql)?);
        }
        Ok(())
    }

    /// Writes all rows of a run in one transaction.
    fn write_run(&mut self, number: i64, bytes: &[u8]) -> anyhow::Result<()> {
        ["BEGIN", WRITE_CHUNK, "COMMIT"].into_iter().try_for_each(|sql| self.prepare(sql))?;
        self.client.run_binary(&[(&self.statements["BEGIN"], &[])])?;
        let rows = (0_i32..).zip(bytes.chunks(CHUNK_BYTES)).map(|(place, chunk)| {
            let (shard, place) = (SHARD.to_be_bytes().to_vec(), place.to_be_bytes().to_vec());
            vec![shard, number.to_be_bytes().to_vec(), place, chunk.to_vec()]
        });
        let rows: Vec<_> = rows.collect();
        for rows in rows.chunks(CHUNKS_AT_ONCE) {
            let steps: Vec<_> = rows.iter().map(|row| (&self.statements[WRITE_CHUNK], &row[..])).collect();
            self.client.run_binary(&steps)?;
        }
        self.client.run_binary(&[(&self.statements["COMMIT"], &[])])?;
        Ok(())
    }
}

fn int8(bytes: &[u8]) -> anyhow::Result<i64> {
    Ok(i64::from_be_bytes(bytes.try_into()?))
}

fn unavailable(error: impl std::fmt::Display) -> Error {
    Error::Unavailable { reason: format!("{error:#}") }
}

/// Runs are named by their number.
fn number_of(name: &str) -> Result<i64, Error> {
    let number = name.split_once('.').and_then(|(number, _)| number.parse().ok());
    number.ok_or_else(|| unavailable(format!("a blob is named {name}")))
}

impl Blobs for Rows {
    fn create(&self, name: &str) -> Result<Box<dyn BlobWriter>, Error> {
        Ok(Box::new(RunWriter { rows: self.clone(), number: number_of(name)?, bytes: Vec::new() }))
    }

    fn open(&self, name: &str) -> Result<Option<Box<dyn Blob>>, Error> {
        let number = number_of(name)?;
        let rows = self.ask(LENGTH, &[number.to_be_bytes().to_vec()])?;
        let length = rows.first().and_then(|row| int8(&row[0]).ok()).unwrap_or(0);
        let run = StoredRun { rows: self.clone(), number, byte_count: length as u64 };
        Ok((length > 0).then(|| -> Box<dyn Blob> { Box::new(run) }))
    }

    fn read(&self, _: &str) -> Result<Option<Vec<u8>>, Error> {
        Ok(self.ask(READ_MANIFEST, &[])?.into_iter().flatten().next())
    }

    fn replace(&self, _: &str, content: &[u8]) -> Result<(), ReplaceError> {
        self.ask(WRITE_MANIFEST, &[content.to_vec()]).map(drop).map_err(ReplaceError::Unknown)
    }

    fn list(&self) -> Result<Vec<String>, Error> {
        let rows = self.ask(LIST, &[])?;
        let names = rows.iter().map(|row| Ok(format!("{}.run", int8(&row[0])?)));
        names.collect::<anyhow::Result<_>>().map_err(unavailable)
    }

    fn remove(&self, name: &str) -> Result<(), Error> {
        self.ask(REMOVE, &[number_of(name)?.to_be_bytes().to_vec()]).map(drop)
    }

    fn set_aside(&self, _: &[String]) -> Result<String, Error> {
        Err(unavailable("a bench keeps no damaged runs"))
    }
}

impl Journal for Rows {
    fn blocks_after(&self, group: u64) -> Result<Vec<(u64, Bytes)>, Error> {
        self.blocks(READ_BLOCKS, group)
    }

    fn release(&self, up_to: u64) -> Result<(), Error> {
        self.blocks(READ_OLD_BLOCKS, up_to)?;
        self.ask(REMOVE_BLOCKS, &[up_to.to_be_bytes().to_vec()])?;
        self.0.lock().client.execute(VACUUM).map_err(unavailable)
    }
}

struct RunWriter {
    rows: Rows,
    number: i64,
    bytes: Vec<u8>,
}

impl BlobWriter for RunWriter {
    fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<Box<dyn Blob>, Error> {
        self.rows.0.lock().write_run(self.number, &self.bytes).map_err(unavailable)?;
        Ok(Box::new(Bytes::from(self.bytes)))
    }
}

/// A run that is read row by row, and kept.
struct StoredRun {
    rows: Rows,
    number: i64,
    byte_count: u64,
}

impl StoredRun {
    fn chunk(&self, place: u32) -> Result<Bytes, Error> {
        let mut connected = self.rows.0.lock();
        if let Some(chunk) = connected.chunks.get(&(self.number, place)) {
            return Ok(chunk.clone());
        }
        let values = [self.number.to_be_bytes().to_vec(), place.to_be_bytes().to_vec()];
        let rows = connected.ask(READ_CHUNK, &values).map_err(unavailable)?;
        let chunk =
            rows.into_iter().flatten().next().ok_or_else(|| unavailable("a row of a run is missing"))?;
        let chunk = Bytes::from(chunk);
        connected.chunks.insert((self.number, place), chunk.clone());
        Ok(chunk)
    }
}

impl Blob for StoredRun {
    fn byte_count(&self) -> u64 {
        self.byte_count
    }

    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> Result<(), Error> {
        let (mut offset, mut rest) = (offset as usize, bytes);
        while !rest.is_empty() {
            let chunk = self.chunk((offset / CHUNK_BYTES) as u32)?;
            let found = chunk.get(offset % CHUNK_BYTES..).unwrap_or_default();
            let count = found.len().min(rest.len());
            if count == 0 {
                return Err(unavailable("a run ends early"));
            }
            let (filled, left) = rest.split_at_mut(count);
            filled.copy_from_slice(&found[..count]);
            (offset, rest) = (offset + count, left);
        }
        Ok(())
    }
}

/// The set as another server would find it.
pub(super) fn open(rows: &Rows, last_group: u64) -> anyhow::Result<Arc<SetView>> {
    let source = Source { owner: OWNER, last_group, last_change: None, journal: rows, first_run: 0 };
    Ok(recover(Arc::new(rows.clone()), &options(), CACHE_BYTES, &source)?.view())
}

fn options() -> SetOptions {
    SetOptions { memory_bytes: RUN_BYTES, ..SetOptions::default() }
}

/// The set of the server that writes, with its merging thread.
pub(super) struct Set {
    engine: Arc<Engine>,
    merger: JoinHandle<Merger>,
    /// Blocks of groups that came before their predecessors, and the group that is next.
    early: Mutex<(u64, BTreeMap<u64, GroupBlock>)>,
}

struct Engine {
    view: Mutex<Arc<SetView>>,
    control: Control,
    rows: Rows,
}

impl Set {
    /// A new one, of empty tables.
    pub(super) fn start(address: SocketAddr) -> anyhow::Result<Set> {
        let rows = Rows::connect(address)?;
        let source = Source { owner: OWNER, last_group: 0, last_change: None, journal: &rows, first_run: 0 };
        let recovered = recover(Arc::new(rows.clone()), &options(), CACHE_BYTES, &source)?;
        let control = Control::new(options(), &recovered.view(), 0);
        let engine = Arc::new(Engine { view: Mutex::new(recovered.view()), control, rows: rows.clone() });
        let merger = recovered.into_merger(Arc::<Engine>::clone(&engine));
        let merger = std::thread::spawn(move || merger.run());
        Ok(Set { engine, merger, early: Mutex::new((1, BTreeMap::new())) })
    }

    /// Shows the block of a group to readers and to the merger; waits if that is far behind.
    pub(super) fn publish(&self, group: u64, block: GroupBlock) -> anyhow::Result<()> {
        let mut early = self.early.lock();
        let (next, blocks) = &mut *early;
        blocks.insert(group, block);
        while let Some(block) = blocks.remove(next) {
            *next += 1;
            let mut view = self.engine.view.lock();
            *view = Arc::new(block.onto(&view));
            let now = Arc::clone(&view);
            drop(view);
            self.engine.control.grown(&now);
        }
        drop(early);
        self.engine.control.wait_for_room(|| self.engine.view())?;
        Ok(())
    }

    /// Merges what is left.
    pub(super) fn finish(self) -> anyhow::Result<()> {
        self.engine.control.stop();
        let merger = self.merger.join().ok().context("the merging thread ends")?;
        merger.close()?;
        Ok(())
    }
}

impl Publisher for Engine {
    fn view(&self) -> Arc<SetView> {
        Arc::clone(&self.view.lock())
    }

    fn update(&self, change: &mut dyn FnMut(u64, &mut SetView)) {
        let mut view = self.view.lock();
        let mut changed = SetView::clone(&view);
        // Groups are published under the same lock; which one was last matters to engines that drop keys.
        change(0, &mut changed);
        *view = Arc::new(changed);
    }

    fn journal(&self) -> Result<Arc<dyn Journal>, Error> {
        Ok(Arc::new(self.rows.clone()))
    }

    fn control(&self) -> &Control {
        &self.control
    }

    fn dropped(&self) -> Vec<Bytes> {
        Vec::new()
    }

    fn damage(&self) -> Option<Arc<DamageSignal>> {
        None
    }

    fn has_room(&self, _: u64) -> bool {
        true
    }

    fn fail(&self, reason: String) {
        eprintln!("merging stopped: {reason}");
    }
}
