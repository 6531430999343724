//! The tables of a store: made, told about, brought up to date.
//!
//! In: a store's address. Out: a schema of the present format, or a refusal that says what to do.
//! Invariants
//! - A format that is newer than this program is refused, for reading too.
//! - Making and changing tables is one transaction: it has happened or it has not.
//! - A store belongs to one account: its number stands in it, and another account's store is refused.

use crate::connection::{ConnectionPurpose, StoreConnection};
use crate::error::Trouble;
use crate::url::StoreUrl;

/// The format that this program reads and writes.
pub const FORMAT: u32 = 1;

/// What a store is found to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreStatus {
    /// The server's own words of its version.
    pub version: String,
    /// The format of the tables; nothing if there are none.
    pub format: Option<u32>,
    /// The account it belongs to.
    pub account: Option<String>,
    /// How many shards it holds, those that were dropped not counted.
    pub shards: u64,
    /// Bytes of all tables with their indexes.
    pub bytes: u64,
    /// What is dangerous about its settings, in words.
    pub warnings: Vec<String>,
}

/// Why a store cannot be used.
#[derive(Debug, Clone, thiserror::Error)]
pub enum SchemaError {
    /// It does not answer.
    #[error("the store does not answer: {0}")]
    Unreachable(String),
    /// It has no tables of ours.
    #[error("the store has no tables of Astrarium in schema {0}; make them with `astrarium store init`")]
    Absent(String),
    /// It was made by a newer program.
    #[error(
        "the store has format {found}, and this program understands {FORMAT} at most; use a newer program"
    )]
    Newer {
        /// What it has.
        found: u32,
    },
    /// It was made by an older program.
    #[error(
        "the store has format {found}, and this program needs {FORMAT}; bring it up to date with `astrarium store migrate`"
    )]
    Older {
        /// What it has.
        found: u32,
    },
    /// It has no catalog.
    #[error("this is a further store of an account; give the address of the account's first store")]
    Further,
    /// It belongs to another account.
    #[error("the store belongs to account {found}, not to {wanted}")]
    Foreign {
        /// Whose it is.
        found: String,
        /// Who asks.
        wanted: String,
    },
}

impl From<Trouble> for SchemaError {
    fn from(trouble: Trouble) -> SchemaError {
        SchemaError::Unreachable(trouble.words().to_owned())
    }
}

/// Makes the tables, unless they are there; tells the account. With an account, the store becomes one of its further stores.
pub(crate) async fn init(url: &StoreUrl, account: Option<&str>) -> Result<String, SchemaError> {
    let connection = StoreConnection::open(url, ConnectionPurpose::Work).await?;
    match found(&connection, url).await? {
        Some((FORMAT, there)) => match account {
            Some(wanted) if wanted != there => {
                Err(SchemaError::Foreign { found: there, wanted: wanted.to_owned() })
            }
            _ => Ok(there),
        },
        Some((format, _)) => Err(wrong(format)),
        None => {
            let fresh = uuid::Uuid::new_v4().simple().to_string();
            let account = account.unwrap_or(&fresh).to_owned();
            let tables = connection.dialect().tables();
            let schema = &url.schema;
            // Two who do this at once: one of them finds the tables there.
            let script = format!(
                "BEGIN; CREATE SCHEMA IF NOT EXISTS {schema}; SET LOCAL search_path TO {schema}; {tables} \
                 INSERT INTO meta VALUES ('format', '{FORMAT}'), ('account', '{account}'); COMMIT;"
            );
            if let Err(trouble) = connection.script(&script).await {
                connection.roll_back_later();
                return match found(&connection, url).await? {
                    // Another account may have been the faster one.
                    Some((FORMAT, there)) if account == there || account == fresh => Ok(there),
                    Some((FORMAT, found)) => Err(SchemaError::Foreign { found, wanted: account }),
                    _ => Err(trouble.into()),
                };
            }
            Ok(account)
        }
    }
}

/// Refuses what this program cannot use as an account's first store; tells the account.
pub(crate) async fn check(url: &StoreUrl) -> Result<String, SchemaError> {
    let connection = StoreConnection::open(url, ConnectionPurpose::Work).await?;
    match found(&connection, url).await? {
        Some((FORMAT, account)) => {
            const IS_FURTHER: &str = "SELECT FROM meta WHERE name = 'place'";
            let is_further = !connection.query(IS_FURTHER, &[]).await?.is_empty();
            if is_further { Err(SchemaError::Further) } else { Ok(account) }
        }
        Some((format, _)) => Err(wrong(format)),
        None => Err(SchemaError::Absent(url.schema.clone())),
    }
}

/// Brings older tables up to date; tells the format of before.
pub(crate) async fn migrate(url: &StoreUrl) -> Result<u32, SchemaError> {
    let connection = StoreConnection::open(url, ConnectionPurpose::Work).await?;
    match found(&connection, url).await? {
        // There was no format before this one.
        Some((format, _)) if format <= FORMAT => Ok(format),
        Some((format, _)) => Err(wrong(format)),
        None => Err(SchemaError::Absent(url.schema.clone())),
    }
}

fn wrong(found: u32) -> SchemaError {
    if found > FORMAT { SchemaError::Newer { found } } else { SchemaError::Older { found } }
}

/// What a store is.
pub(crate) async fn status(url: &StoreUrl) -> Result<StoreStatus, SchemaError> {
    let connection = StoreConnection::open(url, ConnectionPurpose::Work).await?;
    let version = connection.query("SELECT version()", &[]).await?;
    let version = version.first().map(|row| row.get(0)).unwrap_or_default();
    let warnings = warnings(&connection).await?;
    let Some((format, account)) = found(&connection, url).await? else {
        return Ok(StoreStatus { version, format: None, account: None, shards: 0, bytes: 0, warnings });
    };
    let (mut shards, mut bytes) = (0, 0);
    if format == FORMAT {
        const COUNT: &str = "SELECT (SELECT count(*) FROM shard WHERE NOT is_dropped), \
            (SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint FROM pg_class c \
             JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = $1 AND c.relkind = 'r')";
        let rows = connection.query(COUNT, &[&url.schema]).await?;
        (shards, bytes) = rows.first().map_or((0, 0), |row| (row.get::<_, i64>(0), row.get::<_, i64>(1)));
    }
    let (shards, bytes) = (shards.cast_unsigned(), bytes.cast_unsigned());
    Ok(StoreStatus { version, format: Some(format), account: Some(account), shards, bytes, warnings })
}

/// Settings under which something acknowledged could be lost.
async fn warnings(connection: &StoreConnection) -> Result<Vec<String>, Trouble> {
    const DANGERS: [(&str, &str, &str); 2] = [
        ("fsync", "off", "fsync is off: a crash of the machine can lose or damage everything"),
        ("full_page_writes", "off", "full_page_writes is off: a crash of the machine can damage tables"),
    ];
    let rows = connection
        .query(
            "SELECT name, setting FROM pg_settings WHERE name = ANY($1)",
            &[&DANGERS.map(|danger| danger.0).to_vec()],
        )
        .await?;
    let is_met = |name: &str, bad: &str| {
        rows.iter().any(|row| row.get::<_, &str>(0) == name && row.get::<_, &str>(1) == bad)
    };
    Ok(DANGERS
        .iter()
        .filter(|(name, bad, _)| is_met(name, bad))
        .map(|(_, _, what)| (*what).to_owned())
        .collect())
}

async fn found(connection: &StoreConnection, url: &StoreUrl) -> Result<Option<(u32, String)>, Trouble> {
    const IS_THERE: &str = "SELECT FROM pg_tables WHERE schemaname = $1 AND tablename = 'meta'";
    if connection.query(IS_THERE, &[&url.schema]).await?.is_empty() {
        return Ok(None);
    }
    let rows = connection.query("SELECT name, value FROM meta", &[]).await?;
    let value =
        |name: &str| rows.iter().find(|row| row.get::<_, &str>(0) == name).map(|row| row.get::<_, String>(1));
    let format = value("format").and_then(|format| format.parse().ok());
    let format = format.ok_or_else(|| Trouble::Wrong("the table meta has no format".to_owned()))?;
    Ok(Some((format, value("account").unwrap_or_default())))
}
