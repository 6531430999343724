//! One throughput for all servers: each tells the others what it has spent, about ten times a second.
//!
//! ```text
//! notice   (bytes of the owner's rid u8, rid, shard u64, units f64)*       big-endian
//! ```
//! A notice that is lost lets clients have a little more than they pay for; it is never sent again.

use astrarium_database::{Account, Rid, SpentUnits};
use astrarium_kv_postgres::PostgresEngine;
use std::sync::Arc;
use std::time::Duration;

/// How often.
const INTERVAL: Duration = Duration::from_millis(100);

/// Begins to tell the others, and to hear them, until the engine is gone.
pub(crate) fn share(engine: &Arc<PostgresEngine>, account: &Account) {
    let heard = account.clone();
    engine.hear_notices(Arc::new(move |notice| heard.monitoring().note_spent_elsewhere(&decode(&notice))));
    let (engine, account) = (Arc::downgrade(engine), account.clone());
    tokio::runtime::Handle::current().spawn(async move {
        while let Some(engine) = engine.upgrade() {
            let spent = account.monitoring().take_spent();
            if !spent.is_empty() && engine.alive().len() > 1 {
                engine.tell_peers(encode(&spent).into());
            }
            drop(engine);
            tokio::time::sleep(INTERVAL).await;
        }
    });
}

fn encode(spent: &[SpentUnits]) -> Vec<u8> {
    let mut notice = Vec::new();
    for SpentUnits { owner, shard, units } in spent {
        let owner = owner.as_bytes();
        notice.push(owner.len() as u8);
        notice.extend_from_slice(owner);
        notice.extend_from_slice(&shard.to_be_bytes());
        notice.extend_from_slice(&units.to_be_bytes());
    }
    notice
}

/// What of a notice can be read.
fn decode(mut notice: &[u8]) -> Vec<SpentUnits> {
    let mut spent = Vec::new();
    while let Some(next) = decode_next(&mut notice) {
        spent.push(next);
    }
    spent
}

fn decode_next(notice: &mut &[u8]) -> Option<SpentUnits> {
    let length = usize::from(*notice.split_off_first()?);
    let owner = Rid::from_bytes(notice.split_off(..length)?)?;
    let (shard, rest) = notice.split_first_chunk()?;
    let (units, rest) = rest.split_first_chunk()?;
    *notice = rest;
    let units = f64::from_be_bytes(*units);
    Some(SpentUnits {
        owner,
        shard: u64::from_be_bytes(*shard),
        units: if units.is_finite() && units >= 0.0 { units } else { 0.0 },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notices_round_trip_and_bad_ones_harm_nobody() {
        let container = Rid::container(Rid::database(7), 9);
        let spent = [
            SpentUnits { owner: container, shard: 3, units: 12.5 },
            SpentUnits { owner: Rid::ROOT, shard: 0, units: 1.0 },
        ];
        let notice = encode(&spent);
        assert_eq!(decode(&notice), spent);
        for length in 0..notice.len() {
            assert!(decode(&notice[..length]).len() < 2);
        }
        assert_eq!(decode(&encode(&[SpentUnits { units: f64::NAN, ..spent[0] }]))[0].units.to_bits(), 0);
        assert_eq!(decode(&[255; 300]), []);
    }
}
