//! Checking everything that is stored, while others may write.
//!
//! In: nothing. Out: a report for each key range.
//! Each range is checked on one view of its shard, under the epoch that its container was loaded with, so documents, index and
//! counters are of one moment and of one definition. What is not of that view (marks of generations to be removed) may be newer; so
//! problems are told only when they are found again.
//! Invariants
//! - Concurrent writes, splits, moves and changes of policies are never reported as problems.
//! - Ranges that come of a range while it is checked are checked too.

use crate::{AccountCore, Error, Link, index_cache};
use astrarium_catalog::records::Resource;
use astrarium_kv as kv;
use astrarium_store as store;
use astrarium_store::verify::{Report, verify_range};
use std::collections::BTreeSet;

/// How often problems of a range must be found to be told.
const FINDINGS_MIN: u32 = 3;

/// How often a range may change its definition or its place while it is checked.
const CHANGES_MAX: u32 = 50;

impl AccountCore {
    /// Checks everything stored, container by container, and reports each range as `database/container`.
    pub(crate) async fn verify(&self, mut progress: impl FnMut(&str, &Report)) -> Result<(), Error> {
        for (database, resource) in self.named_containers().await? {
            let name = format!("{database}/{}", resource.record.id);
            self.verify_container(&resource, |report| progress(&name, report)).await?;
        }
        Ok(())
    }

    /// Checks the ranges of a container; one that is gone has none.
    async fn verify_container(
        &self,
        resource: &Resource,
        mut progress: impl FnMut(&Report),
    ) -> Result<(), Error> {
        let mut checked = BTreeSet::new();
        let (mut findings, mut changes) = (0, 0);
        loop {
            let link = (Link::Rid(resource.parent), Link::Rid(resource.rid));
            let container = match self.load_container(link.0, link.1).await {
                Err(Error::NotFound | Error::OwnerNotFound) => return Ok(()),
                container => container?,
            };
            let indexes = index_cache::make(&container);
            loop {
                let Some(range) = container.ranges.iter().find(|range| !checked.contains(&range.shard))
                else {
                    return Ok(());
                };
                let report = match verify_range(self.engine(), &container, &indexes, range).await {
                    Err(error) if is_change(&error) && changes < CHANGES_MAX => {
                        changes += 1;
                        break;
                    }
                    Err(store::Error::Storage(kv::Error::SetLost { what })) => Report {
                        problems: vec![format!("the index is lost and has to be built anew: {what}")],
                        ..Report::default()
                    },
                    report => report?,
                };
                findings += 1;
                if !report.problems.is_empty() && findings < FINDINGS_MIN {
                    break;
                }
                progress(&report);
                checked.insert(range.shard);
                (findings, changes) = (0, 0);
            }
        }
    }
}

/// Whether the container has changed since it was loaded.
fn is_change(error: &store::Error) -> bool {
    matches!(
        error,
        store::Error::Storage(kv::Error::Fenced { .. } | kv::Error::Dropped { .. })
            | store::Error::RangeClosed
    )
}
