//! Telling whose data a damaged file holds.
//!
//! In: files and keys, as storage finds them. Out: sentences for `/ready`, naming the containers and what to do.

use crate::{AccountCore, Error};
use astrarium_catalog::records;
use astrarium_keys::Rid;
use astrarium_keys::record::RecordKind;
use astrarium_kv::{Damage, Space};

/// Containers that a sentence names.
const NAMED_MAX: usize = 8;

impl AccountCore {
    /// Reads one more of the stored files whole, looking for damage; false when all of them were read.
    pub(crate) fn check_next_file(&self) -> bool {
        self.engine().check_next_file()
    }

    /// Puts what storage knows of damaged files into words.
    pub(crate) async fn note_damage(&self) -> Result<(), Error> {
        let damages = self.engine().damages();
        let known = self.shared.damage.lock().len();
        if damages.len() == known {
            return Ok(());
        }
        let shards = self.named_shards().await.unwrap_or_default();
        let words = damages.iter().map(|damage| in_words(damage, &shards)).collect();
        *self.shared.damage.lock() = words;
        Ok(())
    }

    /// Every shard with the path of its container.
    async fn named_shards(&self) -> Result<Vec<(u64, String)>, Error> {
        let view = self.catalog().await?;
        let mut named = Vec::new();
        for database in records::list_all(&*view, RecordKind::Database, Rid::ROOT).await? {
            for container in records::list_all(&*view, RecordKind::Container, database.rid).await? {
                let name = format!("{}/{}", database.record.id, container.record.id);
                let rows = records::ranges(&*view, container.rid).await?;
                named.extend(rows.iter().map(|row| (row.shard, name.clone())));
            }
        }
        Ok(named)
    }
}

fn in_words(damage: &Damage, shards: &[(u64, String)]) -> String {
    let whose = match damage.space {
        Some(Space::Body | Space::Log) => {
            let range = shard_of(&damage.first).unwrap_or(0)..=shard_of(&damage.last).unwrap_or(u64::MAX);
            let mut names: Vec<_> = shards
                .iter()
                .filter(|(shard, _)| range.contains(shard))
                .map(|(_, name)| name.as_str())
                .collect();
            names.dedup();
            let more = names.len().saturating_sub(NAMED_MAX);
            names.truncate(NAMED_MAX);
            let more = if more > 0 { format!(" and {more} more containers") } else { String::new() };
            format!("documents of {}{more}", names.join(", "))
        }
        Some(Space::Meta) => "definitions of databases and containers".to_owned(),
        None => "counters of containers".to_owned(),
    };
    format!(
        "{}; {whose} may be unreadable. Put the file back from a backup while the server is stopped, or save what can be saved \
         with `astrarium repair --accept-loss`",
        damage.file
    )
}

/// The shard that a key of a document or its log entries begins with, after the tag.
fn shard_of(key: &[u8]) -> Option<u64> {
    key.get(1..)?.first_chunk().map(|shard| u64::from_be_bytes(*shard))
}
