//! Every piece of SQL that depends on who speaks the protocol: the tables, blind writes, and reads that may be stale.
//!
//! All other statements are plain SQL that PostgreSQL, Citus and YugabyteDB understand alike, and stand where they are used.
//! What was never run is not claimed: the documentation lists where the test suites have passed.

/// Whose SQL it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Dialect {
    /// PostgreSQL 15 and later, and Citus, whose coordinator takes the same statements.
    #[default]
    Postgres,
    /// YugabyteDB 2025.2 and later: the shard's number is hashed, keys are in order below it.
    Yugabyte,
}

impl Dialect {
    /// The dialect of a server that says this of its version.
    pub(crate) fn of(version: &str) -> Dialect {
        if version.contains("-YB-") { Dialect::Yugabyte } else { Dialect::Postgres }
    }

    /// The tables of a store, in the schema that is the session's.
    pub(crate) fn tables(self) -> String {
        let shard = match self {
            Dialect::Postgres => "shard",
            Dialect::Yugabyte => "shard HASH",
        };
        // Rows of `shard` are changed by every commit: room on their pages keeps the changes off the index. What merges leave behind is
        // given back soon.
        let (roomy, whole) = match self {
            Dialect::Postgres => (
                "WITH (fillfactor = 20)",
                "ALTER TABLE set_blob ALTER COLUMN bytes SET STORAGE EXTERNAL;
                 ALTER TABLE set_group ALTER COLUMN block SET STORAGE EXTERNAL;
                 ALTER TABLE set_group SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);
                 ALTER TABLE shard SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);
                 ALTER TABLE mark SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);",
            ),
            Dialect::Yugabyte => ("", ""),
        };
        format!(
            "CREATE TABLE meta (name text PRIMARY KEY, value text NOT NULL);
             CREATE TABLE shard (id bigint PRIMARY KEY, version bigint NOT NULL DEFAULT 0, epoch bigint NOT NULL DEFAULT 0,
                high_water bigint NOT NULL DEFAULT 0, tally_0 bigint NOT NULL DEFAULT 0,
                tally_1 bigint NOT NULL DEFAULT 0, is_dropped boolean NOT NULL DEFAULT false,
                set_group bigint NOT NULL DEFAULT 0, manifest bigint NOT NULL DEFAULT 0, set_is_lost boolean NOT NULL DEFAULT false,
                drops bigint NOT NULL DEFAULT 0, has_chunks boolean NOT NULL DEFAULT false, pending bytea) {roomy};
             CREATE TABLE number (shard bigint PRIMARY KEY, drawn bigint NOT NULL) {roomy};
             CREATE TABLE kv (shard bigint NOT NULL, space smallint NOT NULL, k bytea NOT NULL, v bytea NOT NULL,
                chunks integer NOT NULL DEFAULT 0, PRIMARY KEY ({shard}, space, k));
             CREATE TABLE chunk (shard bigint NOT NULL, space smallint NOT NULL, k bytea NOT NULL, n integer NOT NULL,
                v bytea NOT NULL, PRIMARY KEY ({shard}, space, k, n));
             CREATE TABLE mark (shard bigint NOT NULL, server bigint NOT NULL, sequence bigint NOT NULL,
                PRIMARY KEY ({shard}, server)) {roomy};
             CREATE TABLE dropped_prefix (shard bigint NOT NULL, space smallint NOT NULL, prefix bytea NOT NULL,
                PRIMARY KEY ({shard}, space, prefix));
             CREATE TABLE set_group (shard bigint NOT NULL, grp bigint NOT NULL, block bytea NOT NULL, PRIMARY KEY ({shard}, grp));
             CREATE TABLE set_blob (shard bigint NOT NULL, number bigint NOT NULL, n integer NOT NULL, bytes bytea NOT NULL,
                PRIMARY KEY ({shard}, number, n));
             CREATE TABLE set_manifest (shard bigint PRIMARY KEY, number bigint NOT NULL DEFAULT 0, content bytea,
                fence bigint NOT NULL DEFAULT 0, holder bigint NOT NULL DEFAULT 0, expires timestamptz NOT NULL DEFAULT 'epoch');
             CREATE TABLE set_garbage (shard bigint NOT NULL, number bigint NOT NULL, since timestamptz NOT NULL DEFAULT now(),
                PRIMARY KEY ({shard}, number));
             CREATE TABLE server (id bigint PRIMARY KEY, name text NOT NULL, endpoint text NOT NULL, peer text NOT NULL,
                certificate bytea NOT NULL, version text NOT NULL, started timestamptz NOT NULL DEFAULT now(),
                expires timestamptz NOT NULL, has_left boolean NOT NULL DEFAULT false);
             CREATE TABLE store (id integer PRIMARY KEY, name text NOT NULL UNIQUE, url text NOT NULL,
                is_draining boolean NOT NULL DEFAULT false);
             CREATE TABLE placement (shard bigint PRIMARY KEY, store integer NOT NULL, is_fixed boolean NOT NULL);
             CREATE TABLE decision (id bytea PRIMARY KEY, is_committed boolean NOT NULL, at timestamptz NOT NULL DEFAULT now());
             CREATE INDEX shard_lost ON shard (id) WHERE set_is_lost;
             {whole}"
        )
    }

    /// Writes keys whatever they hold: shard, spaces, keys, values, numbers of further chunks.
    pub(crate) fn upsert(self) -> &'static str {
        match self {
            Dialect::Postgres => {
                "INSERT INTO kv (shard, space, k, v, chunks) \
                 SELECT $1, e.space, e.k, e.v, e.chunks \
                 FROM unnest($2::smallint[], $3::bytea[], $4::bytea[], $5::integer[]) AS e(space, k, v, chunks) \
                 ON CONFLICT (shard, space, k) DO UPDATE SET v = excluded.v, chunks = excluded.chunks"
            }
            // ON CONFLICT would read row by row; the session writes over what is there (`yb_enable_upsert_mode`).
            Dialect::Yugabyte => {
                "INSERT INTO kv (shard, space, k, v, chunks) \
                 SELECT $1, e.space, e.k, e.v, e.chunks \
                 FROM unnest($2::smallint[], $3::bytea[], $4::bytea[], $5::integer[]) AS e(space, k, v, chunks)"
            }
        }
    }

    /// Deletes keys of a space: shard, space, keys. PostgreSQL is told how to find them, since while it knows nothing of the table's size
    /// it would read the whole shard; only whoever holds the shard's row changes its keys, so that they stay where they were found.
    pub(crate) fn delete(self) -> &'static str {
        match self {
            Dialect::Postgres => {
                "DELETE FROM kv WHERE ctid = ANY(ARRAY(SELECT found.ctid FROM unnest($3::bytea[]) AS e(k) \
                 CROSS JOIN LATERAL (SELECT kv.ctid FROM kv WHERE kv.shard = $1 AND kv.space = $2 AND kv.k = e.k LIMIT 1) AS found))"
            }
            Dialect::Yugabyte => "DELETE FROM kv WHERE shard = $1 AND space = $2 AND k = ANY($3::bytea[])",
        }
    }

    /// What a session sets besides what all do.
    pub(crate) fn session(self) -> &'static str {
        match self {
            Dialect::Postgres => "",
            Dialect::Yugabyte => "SET yb_enable_upsert_mode = on;",
        }
    }
}
