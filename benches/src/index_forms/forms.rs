//! The forms that are compared: their tables, and how a group of documents is committed in each.
//!
//! Invariants
//! - All but the plain one commit alike, in two round trips: the counter row is locked and raised, then everything is written and
//!   committed. Bodies and log entries are the same.
//! - What does not depend on the lock is done before it is taken: terms are sorted, the block is packed.

use super::documents::Document;
use crate::postgres::client::{Client, Statement};
use anyhow::Context as _;
use astrarium_packed::{GroupBlock, KeyAction, KeyChange, Origin, PackedChanges, SetOptions};
use std::net::SocketAddr;
use std::ops::Range;

pub(super) const SHARD: i32 = 1;
pub(super) const OWNER: [u8; 16] = [7; 16];
/// So that PostgreSQL uses its primary keys from the beginning, and not what it thinks of empty tables.
const SESSION: &str = "SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_sort = off; \
                       SET plan_cache_mode = force_generic_plan; SET jit = off";
const TABLES: [&str; 8] =
    ["counter", "body", "log", "term", "set_group", "set_blob", "set_manifest", "items"];
const COMMON: &str = "CREATE TABLE counter (shard int4 PRIMARY KEY, n int8) WITH (fillfactor = 20); \
    INSERT INTO counter VALUES (1, 0); \
    CREATE TABLE body (shard int4, k bytea, v bytea, PRIMARY KEY (shard, k)); \
    ALTER TABLE body ALTER v SET STORAGE EXTERNAL; \
    CREATE TABLE log (shard int4, lsn int8, v bytea, PRIMARY KEY (shard, lsn))";
const ROWS: &str = "CREATE TABLE term (shard int4, k bytea, PRIMARY KEY (shard, k))";
const PACKED: &str = "CREATE TABLE set_group (shard int4, grp int8, block bytea, PRIMARY KEY (shard, grp)); \
    CREATE TABLE set_blob (shard int4, number int8, n int4, bytes bytea, PRIMARY KEY (shard, number, n)); \
    CREATE TABLE set_manifest (shard int4 PRIMARY KEY, content bytea); \
    ALTER TABLE set_group ALTER block SET STORAGE EXTERNAL; \
    ALTER TABLE set_blob ALTER bytes SET STORAGE EXTERNAL";
const PLAIN: &str = "CREATE TABLE items (k bytea PRIMARY KEY, doc jsonb); \
    CREATE INDEX items_doc ON items USING gin (doc jsonb_path_ops)";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// Bodies and log alone: what any index has to be compared with.
    None,
    /// A row for each term.
    Rows,
    /// A packed block for each commit group, merged into runs.
    Packed,
    /// What somebody would do without us: one table, no counter.
    Plain,
}

impl Form {
    pub(super) const ALL: [Form; 4] = [Form::None, Form::Rows, Form::Packed, Form::Plain];

    pub(super) fn name(self) -> &'static str {
        match self {
            Form::None => "no index",
            Form::Rows => "row for each term",
            Form::Packed => "packed blocks",
            Form::Plain => "plain, jsonb with GIN",
        }
    }

    /// Makes its tables anew, alone in the database.
    pub(super) fn make_tables(self, client: &mut Client) -> anyhow::Result<()> {
        client.execute(&format!("DROP TABLE IF EXISTS {}", TABLES.join(", ")))?;
        let tables = match self {
            Form::None => COMMON.to_owned(),
            Form::Rows => format!("{COMMON}; {ROWS}"),
            Form::Packed => format!("{COMMON}; {PACKED}"),
            Form::Plain => PLAIN.to_owned(),
        };
        client.execute(&tables)?;
        // Every run begins with the same distance to the next one.
        client.execute("CHECKPOINT")
    }

    /// What gives the bytes of all its tables, and of its index alone.
    pub(super) fn size(self) -> String {
        let sum = |tables: &[&str]| {
            let sizes = tables.iter().map(|table| format!("pg_total_relation_size('{table}')"));
            sizes.collect::<Vec<_>>().join(" + ")
        };
        let rest = sum(&["body", "log", "counter"]);
        let index = match self {
            Form::None => "0".to_owned(),
            Form::Rows => sum(&["term"]),
            Form::Packed => sum(&["set_group", "set_blob", "set_manifest"]),
            Form::Plain => return format!("{}, pg_relation_size('items_doc')", sum(&["items"])),
        };
        format!("{rest} + {index}, ({index})::int8")
    }
}

/// A connection that commits groups.
pub(super) struct Committer {
    form: Form,
    client: Client,
    begin: Statement,
    raise: Option<Statement>,
    bodies: Statement,
    log: Option<Statement>,
    index: Option<Statement>,
    commit: Statement,
}

impl Committer {
    pub(super) fn new(address: SocketAddr, form: Form) -> anyhow::Result<Committer> {
        let mut client = connect(address)?;
        let mut prepared = |text: &str| client.prepare(text);
        let begin = prepared("BEGIN")?;
        let commit = prepared("COMMIT")?;
        let (raise, bodies, log) = if form == Form::Plain {
            let bodies =
                "INSERT INTO items SELECT * FROM (SELECT unnest($1::bytea[]), unnest($2::text[])::jsonb) i";
            (None, prepared(bodies)?, None)
        } else {
            let raise = "UPDATE counter SET n = n + 1 WHERE shard = $1 RETURNING n";
            let bodies = "INSERT INTO body SELECT $1, * FROM unnest($2::bytea[], $3::bytea[]) \
                          ON CONFLICT (shard, k) DO UPDATE SET v = excluded.v";
            let log = "INSERT INTO log SELECT $1, * FROM unnest($2::int8[], $3::bytea[])";
            (Some(prepared(raise)?), prepared(bodies)?, Some(prepared(log)?))
        };
        let index = match form {
            Form::None | Form::Plain => None,
            Form::Rows => Some("INSERT INTO term SELECT $1, unnest($2::bytea[]) ON CONFLICT DO NOTHING"),
            Form::Packed => Some("INSERT INTO set_group VALUES ($1, $2, $3)"),
        };
        let index = index.map(prepared).transpose()?;
        Ok(Committer { form, client, begin, raise, bodies, log, index, commit })
    }

    /// Commits a group of documents. Out: its number and its block, if the form has one.
    pub(super) fn commit(&mut self, numbers: Range<u64>) -> anyhow::Result<Option<(u64, GroupBlock)>> {
        let (Some(raise), Some(log)) = (&self.raise, &self.log) else {
            return self.commit_plain(numbers);
        };
        let documents: Vec<_> = numbers.map(Document::new).collect();
        let shard = SHARD.to_be_bytes().to_vec();
        let bodies = [
            shard.clone(),
            array(BYTEA, documents.iter().map(|document| &document.key[..])),
            array(BYTEA, documents.iter().map(|document| &document.body[..])),
        ];
        let packed = if self.form == Form::Packed { Some(pack(&documents)?) } else { None };
        let terms = if self.form == Form::Rows { Some(sorted(&documents)) } else { None };
        let raising = [shard.clone()];
        let rows = self.client.run_binary(&[(&self.begin, &[]), (raise, &raising)])?;
        let group = rows.first().and_then(|row| row.first()?[..].try_into().ok());
        let group = u64::from_be_bytes(group.context("read the counter")?);
        let block = packed.map(|packed| packed.seal(Origin { owner: OWNER, group, before: group - 1 }));
        let versions: Vec<_> =
            (0..documents.len() as u64).map(|place| (group << 8 | place).to_be_bytes()).collect();
        let entries = [
            shard.clone(),
            array(INT8, versions.iter().map(|version| &version[..])),
            array(BYTEA, documents.iter().map(|document| &document.terms[0][..])),
        ];
        let index = match (&block, terms) {
            (Some(block), _) => vec![shard, group.to_be_bytes().to_vec(), block.value.to_vec()],
            (None, Some(terms)) => vec![shard, terms],
            (None, None) => Vec::new(),
        };
        let mut steps: Vec<(&Statement, &[Vec<u8>])> = vec![(&self.bodies, &bodies), (log, &entries)];
        steps.extend(self.index.as_ref().map(|statement| (statement, &index[..])));
        steps.push((&self.commit, &[]));
        self.client.run_binary(&steps)?;
        Ok(block.map(|block| (group, block)))
    }

    fn commit_plain(&mut self, numbers: Range<u64>) -> anyhow::Result<Option<(u64, GroupBlock)>> {
        let keys: Vec<_> = numbers.clone().map(|number| Document::new(number).key).collect();
        let texts: Vec<_> = numbers.map(Document::json).collect();
        let values =
            [array(BYTEA, keys.iter().map(|key| &key[..])), array(TEXT, texts.iter().map(String::as_bytes))];
        self.client.run_binary(&[(&self.bodies, &values)])?;
        Ok(None)
    }
}

pub(super) fn connect(address: SocketAddr) -> anyhow::Result<Client> {
    let mut client = Client::connect(address, "postgres")?;
    client.execute(SESSION)?;
    Ok(client)
}

fn pack(documents: &[Document]) -> anyhow::Result<PackedChanges> {
    let changes = (0..).zip(documents).flat_map(|(batch, document)| {
        document.terms.iter().map(move |term| KeyChange::of_key(batch, term, KeyAction::Add))
    });
    PackedChanges::of(changes, SetOptions::default().block_bytes)?.context("documents have terms")
}

/// All terms of a group in order, which is how a B-tree likes them.
fn sorted(documents: &[Document]) -> Vec<u8> {
    let mut terms: Vec<_> = documents.iter().flat_map(|document| &document.terms).collect();
    terms.sort_unstable();
    array(BYTEA, terms.iter().map(|term| &term[..]))
}

const BYTEA: u32 = 17;
const INT8: u32 = 20;
const TEXT: u32 = 25;

/// An array in binary form: one dimension, no NULLs.
fn array<'a>(kind: u32, elements: impl ExactSizeIterator<Item = &'a [u8]>) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(20 + elements.len() * 40);
    for field in [1, 0, kind, elements.len() as u32, 1] {
        bytes.extend_from_slice(&field.to_be_bytes());
    }
    for element in elements {
        bytes.extend_from_slice(&(element.len() as u32).to_be_bytes());
        bytes.extend_from_slice(element);
    }
    bytes
}
