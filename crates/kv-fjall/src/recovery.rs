//! Decides what damage of the journal means, and cuts a journal where it is no longer whole.
//!
//! In: what `journal::scan` found, and the acknowledged mark. Out: a journal that fjall opens without losing anything
//! acknowledged, or [`JournalVerdict::Lost`].
//! Why each kind of damage means what it means: fjall syncs each batch before the next one is written, and a journal
//! before the next one is begun. So
//! - damage with a whole batch behind it hit something that had been acknowledged, or could have been;
//! - damage in a journal that is not the last one, too;
//! - damage at the very end is a batch that was being written when the machine stopped, unless the mark says that it
//!   had been acknowledged. It is cut off, and the cut bytes are kept in a file beside.
//!
//! Not here: the comparison with the tables, which needs fjall (`lib`).

use crate::identity::FolderIdentity;
use crate::journal::{self, JournalFindings, Lineage};
use crate::tree_files::BadFile;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// Cut pieces of one journal that are kept at most.
const KEPT_COUNT_MAX: u32 = 32;

/// What the journals of a folder say.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum JournalVerdict {
    /// Nothing is wrong.
    Clean {
        /// The last group in a journal, if there is one.
        last_group: Option<u64>,
    },
    /// The last batch was torn while it was written.
    TornEnd {
        /// The last whole group in a journal, if there is one.
        last_group: Option<u64>,
    },
    /// Acknowledged groups are damaged.
    Lost {
        /// At least this group had been acknowledged.
        acknowledged: u64,
        /// The last group before the damage.
        found: u64,
        /// The journal that should hold them.
        file: PathBuf,
    },
}

/// The journals of a folder.
pub(crate) struct Journals {
    pub(crate) verdict: JournalVerdict,
    /// The first group that is in a journal, where it belongs, and the journal.
    pub(crate) first: Option<(u64, Option<Lineage>, PathBuf)>,
    /// How many files there are.
    pub(crate) count: usize,
    /// Journals that begin with a group of another folder.
    pub(crate) foreign: Vec<BadFile>,
}

/// Judges the journals of an engine folder, given the acknowledged mark and whose they should be. Changes nothing.
pub(crate) fn judge(folder: &Path, mark: u64, identity: Option<FolderIdentity>) -> io::Result<Journals> {
    let found = journal::scan(folder)?;
    let is_foreign = |found: &&JournalFindings| {
        found.lineage.is_some_and(|lineage| identity.is_some_and(|identity| lineage.identity != identity))
    };
    let foreign = |found: &JournalFindings| BadFile {
        path: found.path.clone(),
        what: "belongs to another data folder",
    };
    let first =
        |found: &JournalFindings| found.first_group.map(|group| (group, found.lineage, found.path.clone()));
    Ok(Journals {
        verdict: judge_findings(&found, mark),
        first: found.iter().find_map(first),
        count: found.len(),
        foreign: found.iter().filter(is_foreign).map(foreign).collect(),
    })
}

fn judge_findings(journals: &[JournalFindings], mark: u64) -> JournalVerdict {
    let mut last_group = None;
    for (index, found) in journals.iter().enumerate() {
        let follows = |first: u64| last_group.is_none_or(|last: u64| first == last + 1);
        let is_gap = !found.first_group.is_none_or(follows);
        if !is_gap {
            last_group = found.last_group.or(last_group);
        }
        if !found.is_damaged && !is_gap {
            continue;
        }
        let later = &journals[index + 1..];
        let behind = if is_gap { found.first_group.zip(found.last_group) } else { found.behind };
        return judge_damage(last_group, behind, (&found.path, later), mark);
    }
    let file = || journals.last().map(|found| found.path.clone()).unwrap_or_default();
    match last_group {
        Some(found) if mark > found => JournalVerdict::Lost { acknowledged: mark, found, file: file() },
        _ => JournalVerdict::Clean { last_group },
    }
}

/// The first damage stands after `last_group` in a file; `behind` are whole groups behind it there, `later` the next files.
fn judge_damage(
    last_group: Option<u64>,
    behind: Option<(u64, u64)>,
    (file, later): (&Path, &[JournalFindings]),
    mark: u64,
) -> JournalVerdict {
    let in_later = later.iter().filter_map(|found| found.first_group.zip(found.last_group));
    let (lowest, highest) = behind
        .into_iter()
        .chain(in_later)
        .fold((u64::MAX, 0), |(low, high), (first, last)| (low.min(first), high.max(last)));
    // Where nothing whole stands before the damage, the best guess is that it hit one group.
    let found = last_group.unwrap_or_else(|| if highest > 0 { lowest.saturating_sub(2) } else { 0 });
    if highest > 0 || !later.is_empty() {
        let acknowledged = mark.max(highest).max(found + 1);
        return JournalVerdict::Lost { acknowledged, found, file: file.to_path_buf() };
    }
    match last_group {
        Some(found) if mark > found => {
            JournalVerdict::Lost { acknowledged: mark, found, file: file.to_path_buf() }
        }
        _ => JournalVerdict::TornEnd { last_group },
    }
}

/// Cuts the first damaged journal after its last whole batch and puts later ones aside, keeping everything cut in
/// `*.damaged` files. For a torn end, or when the operator accepts a loss.
pub(crate) fn cut(folder: &Path, identity: Option<FolderIdentity>) -> io::Result<()> {
    let mut last_group = None;
    let mut is_cut = false;
    for found in journal::scan(folder)? {
        let is_gap =
            found.first_group.zip(last_group).is_some_and(|(first, last): (u64, u64)| first != last + 1);
        let own = found.lineage.map(|lineage| lineage.identity);
        let is_foreign = own.zip(identity).is_some_and(|(own, identity)| own != identity);
        if is_cut || is_gap || is_foreign {
            std::fs::rename(&found.path, kept_name(&found.path)?)?;
            is_cut = true;
        } else if found.is_damaged {
            cut_file(&found)?;
            is_cut = true;
        }
        last_group = found.last_group.or(last_group);
    }
    if is_cut { crate::folder::sync_folder(folder) } else { Ok(()) }
}

/// Cuts off what stands behind a group: commits that failed, and of which nobody knows whether the disk has them.
pub(crate) fn cut_after(folder: &Path, group: u64) -> io::Result<()> {
    let mut is_cut = false;
    for found in journal::scan(folder)? {
        let is_behind = found.last_group.is_some_and(|last| last > group) || found.is_damaged;
        if !is_behind {
            continue;
        }
        let end = journal::end_of_group(&found.path, group)?;
        let journal = OpenOptions::new().write(true).open(&found.path)?;
        journal.set_len(end)?;
        journal.sync_all()?;
        is_cut = true;
    }
    if is_cut { crate::folder::sync_folder(folder) } else { Ok(()) }
}

fn cut_file(found: &JournalFindings) -> io::Result<()> {
    let mut journal = OpenOptions::new().read(true).write(true).open(&found.path)?;
    let mut copy = File::create(kept_name(&found.path)?)?;
    journal.seek(SeekFrom::Start(found.whole_bytes))?;
    copy_without_trailing_zeros(&mut journal, &mut copy)?;
    copy.sync_all()?;
    tracing::warn!(
        journal = %found.path.display(),
        at = found.whole_bytes,
        "cut a damaged end off the journal; the bytes are kept beside it"
    );
    journal.set_len(found.whole_bytes)?;
    journal.sync_all()
}

fn copy_without_trailing_zeros(from: &mut File, to: &mut File) -> io::Result<()> {
    let mut buffer = vec![0; 64 << 10];
    let (mut copied, mut used) = (0, 0);
    loop {
        let count = from.read(&mut buffer)?;
        if count == 0 {
            return to.set_len(used);
        }
        to.write_all(&buffer[..count])?;
        if let Some(last) = buffer[..count].iter().rposition(|byte| *byte != 0) {
            used = copied + last as u64 + 1;
        }
        copied += count as u64;
    }
}

/// `0.jnl.damaged`, or with a number when that is taken. fjall ignores it, since it does not end in `.jnl`. After many
/// kills the last name is used again: torn ends were never acknowledged, and must not fill the disk.
fn kept_name(path: &Path) -> io::Result<PathBuf> {
    let mut candidate = PathBuf::new();
    for number in 1..=KEPT_COUNT_MAX {
        let mut name = path.as_os_str().to_owned();
        name.push(if number == 1 { ".damaged".to_owned() } else { format!(".damaged.{number}") });
        candidate = PathBuf::from(name);
        if !candidate.try_exists()? {
            break;
        }
    }
    Ok(candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// First and last group, whether damaged, groups behind the damage.
    type Journal = (Option<(u64, u64)>, bool, Option<(u64, u64)>);

    const EMPTY: Journal = (None, false, None);
    const BROKEN: Journal = (None, true, None);

    fn check(journals: &[Journal], mark: u64, expected: &JournalVerdict) {
        let findings: Vec<_> = journals
            .iter()
            .map(|(groups, is_damaged, behind)| JournalFindings {
                path: PathBuf::new(),
                first_group: groups.map(|(first, _)| first),
                lineage: None,
                last_group: groups.map(|(_, last)| last),
                whole_bytes: 0,
                is_damaged: *is_damaged,
                behind: *behind,
            })
            .collect();
        assert_eq!(judge_findings(&findings, mark), *expected, "{journals:?}, mark {mark}");
    }

    #[test]
    fn damage_means_what_stands_behind_it() {
        let clean = |last_group| JournalVerdict::Clean { last_group };
        let torn = |last_group| JournalVerdict::TornEnd { last_group };
        let lost = |acknowledged, found| JournalVerdict::Lost { acknowledged, found, file: PathBuf::new() };
        let whole = |first, last| (Some((first, last)), false, None);
        let damaged = |first, last| (Some((first, last)), true, None);
        check(&[], 0, &clean(None));
        check(&[EMPTY], 9, &clean(None));
        check(&[whole(1, 5), EMPTY], 5, &clean(Some(5)));
        check(&[whole(1, 5), whole(6, 9)], 7, &clean(Some(9)));
        check(&[EMPTY, whole(6, 9), EMPTY], 7, &clean(Some(9)));
        check(&[whole(1, 5), whole(6, 9)], 10, &lost(10, 9));
        check(&[damaged(1, 5)], 5, &torn(Some(5)));
        check(&[damaged(1, 5)], 6, &lost(6, 5));
        check(&[whole(1, 5), BROKEN], 5, &torn(Some(5)));
        check(&[whole(1, 5), BROKEN], 6, &lost(6, 5));
        check(&[BROKEN], 9, &torn(None));
        check(&[(Some((1, 5)), true, Some((7, 8)))], 1, &lost(8, 5));
        check(&[(None, true, Some((7, 8)))], 1, &lost(8, 5));
        check(&[damaged(1, 5), EMPTY], 1, &lost(6, 5));
        check(&[damaged(1, 5), whole(7, 9)], 1, &lost(9, 5));
        check(&[BROKEN, whole(7, 9)], 1, &lost(9, 5));
        check(&[whole(1, 5), whole(7, 9)], 1, &lost(9, 5));
        check(&[whole(1, 5), whole(7, 9), whole(10, 12)], 1, &lost(12, 5));
    }
}
