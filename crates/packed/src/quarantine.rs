//! What the merger does about damage.
//!
//! In: a block that is not what was written, from a reader or a merge; or damage of which nobody knows the keys. Out: runs without
//! it, the damaged blob set aside for whoever wants to look at it, and lost ranges in manifest and view until they are accepted.
//! Invariants
//! - One damaged block costs the keys of its range: the rest of its segment is written anew. Where there is no room for that, the
//!   whole segment is given up.
//! - Sums of families may be lost with a segment, whosever they are: until they have been made right, keys are walked to be counted.
//! - Nothing stops: not merging, not commits, not what is asked of other ranges.

use crate::FAMILY_BYTES;
use crate::families::{Families, FamilyKey};
use crate::lost::{BadBlock, LostRange, joined};
use crate::manifest::Manifest;
use crate::merger::{Halt, Merger};
use crate::policy::Scope;
use crate::rewrite::{KEYS_AT_ONCE, WrittenSegments};
use crate::segment::Segment;
use crate::stored::blob_name;
use crate::view::SetView;
use std::ops::ControlFlow;
use std::sync::Arc;

impl Merger {
    /// Takes a damaged block out of its run; the keys it held are lost.
    pub(crate) fn quarantine(&mut self, bad: &BadBlock) -> Result<(), Halt> {
        let view = self.engine.view();
        let number_of = |segment: &Segment| segment.blob().map(|blob| blob.record().number);
        let is_it = |segment: &&Arc<Segment>| number_of(segment) == Some(bad.number);
        let Some(damaged) = view.runs.iter().flat_map(|run| &run.segments).find(is_it).cloned() else {
            // Somebody still reads a segment that was replaced, and what replaced it was readable.
            return Ok(());
        };
        let has_room = self.engine.has_room(damaged.byte_count());
        drop(view);
        let readable = match has_room.then(|| self.write_readable(&damaged)) {
            Some(Err(Halt::Stopped)) => return Err(Halt::Stopped),
            readable => readable.and_then(Result::ok),
        };
        let (mut written, lost) = readable.unwrap_or_else(|| {
            let (start, end) = (damaged.start().to_vec(), [damaged.index.last(), &[0]].concat());
            let range = LostRange { start: start.into(), end: end.into(), what: bad.range.what.clone() };
            (WrittenSegments::default(), vec![range])
        });
        if lost.is_empty() {
            // It can be read after all: what failed has passed.
            return Ok(());
        }
        let old = [Arc::clone(&damaged)];
        let new = written.segments.clone();
        // Runs may have come while it was written; nothing else changes them.
        let mut runs = self.engine.view().runs.clone();
        for run in &mut runs {
            if run.segments.iter().any(|segment| Arc::ptr_eq(segment, &damaged)) {
                *run = Arc::new(run.replace(&old, &new));
            }
        }
        runs.retain(|run| !run.segments.is_empty());
        let all_lost = self.manifest.lost.iter().cloned().chain(lost).collect();
        let manifest = Manifest { lost: joined(all_lost), needs_count: true, ..self.manifest.clone() };
        self.install(manifest, &runs, &[], &mut written)?;
        let kept = self.backing.blobs.set_aside(&[blob_name(bad.number)]);
        tracing::error!(
            damage = bad.range.what,
            kept = kept.ok(),
            "a part of the index is damaged: it is set aside, and the index of its containers is built anew; queries over them \
             read all documents meanwhile"
        );
        Ok(())
    }

    /// Goes on with an empty set; all keys are lost.
    pub(crate) fn set_aside(&mut self, what: &str) -> Result<(), Halt> {
        let engine = Arc::clone(&self.engine);
        let mut replaced = Ok(());
        let lost = vec![LostRange::whole(what)];
        let mut manifest = Manifest {
            lost: lost.clone(),
            needs_count: false,
            sums: Families::default(),
            runs: Vec::new(),
            ..self.manifest.clone()
        };
        engine.update(&mut |group, view| {
            manifest.merged = group;
            replaced = manifest.replace(&*self.backing.blobs);
            if replaced.is_ok() {
                *view = SetView { lost: lost.clone().into(), ..SetView::default() };
            }
        });
        replaced?;
        let names: Vec<_> = self.manifest.runs.iter().flatten().map(|run| blob_name(run.number)).collect();
        let kept = self.backing.blobs.set_aside(&names);
        tracing::error!(
            damage = what,
            kept = kept.ok(),
            "the index is damaged: it is set aside and built anew; queries read all documents meanwhile"
        );
        self.manifest = manifest;
        engine.control().merged(self.manifest.merged);
        self.drop_blocks();
        Ok(())
    }

    /// Nobody relies on these keys any more.
    pub(crate) fn accept_loss(&mut self) -> Result<(), Halt> {
        let accepted = self.engine.control().take_accepted();
        let is_accepted =
            |lost: &LostRange| accepted.iter().any(|(start, end)| *start <= lost.start && lost.end <= *end);
        let mut manifest = self.manifest.clone();
        manifest.lost.retain(|lost| !is_accepted(lost));
        manifest.replace(&*self.backing.blobs)?;
        let lost = manifest.lost.clone();
        self.manifest = manifest;
        self.engine.update(&mut |_, view| view.lost = lost.clone().into());
        Ok(())
    }

    /// Whether sums have to be made right: when everything that is left counts.
    pub(crate) fn is_count_due(&self) -> bool {
        self.manifest.needs_count && self.manifest.lost.is_empty()
    }

    /// Counts all families and makes their sums right, with more urgent work in between. What is merged or committed meanwhile
    /// changes nothing about what is missing from a sum.
    pub(crate) fn count_families(&mut self) -> Result<(), Halt> {
        let view = self.engine.view();
        let mut missing = Families::default();
        for family in view.families() {
            missing.add(&family, self.counted(&view, &family)? - view.sum(&family));
        }
        drop(view);
        let sums = Families::total([&self.manifest.sums, &missing].into_iter());
        let manifest = Manifest { sums, needs_count: false, ..self.manifest.clone() };
        let runs = self.engine.view().runs.clone();
        self.install(manifest, &runs, &[], &mut WrittenSegments::default())
    }

    /// How many keys of a family there are.
    fn counted(&mut self, view: &SetView, family: &FamilyKey) -> Result<i64, Halt> {
        let end = [&family[..], &[0xFF; FAMILY_BYTES]].concat();
        let (mut next, mut count) = (Some(family.to_vec()), 0);
        while let Some(start) = next.take() {
            let mut at_once = 0;
            view.scan_forward(&start, &end, |key, _| {
                if at_once == KEYS_AT_ONCE {
                    next = Some(key.to_vec());
                    return ControlFlow::Break(());
                }
                at_once += 1;
                ControlFlow::Continue(())
            })?;
            count += at_once.cast_signed() as i64;
            self.attend(Scope::NotRuns)?;
        }
        Ok(count)
    }
}
