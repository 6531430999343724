//! What `/ready` and `/status` say of a server that takes writes: damage, and how far the indexes under construction are.
//!
//! In: how storage and the work beside requests are. Out: a line for each thing that an operator should know.

use crate::database::BackgroundStatistics;
use std::fmt::Write as _;

pub(crate) fn text(
    remarks: &[String],
    index_losses: &[String],
    work: &BackgroundStatistics,
    damage: &[String],
) -> String {
    let mut text = "ready\n".to_owned();
    for remark in remarks {
        let _ = writeln!(text, "{remark}");
    }
    for what in index_losses {
        let _ = writeln!(text, "the index is damaged: {what}");
    }
    if work.builds_running > 0 {
        let percent = work.build_progress * 100.0;
        let _ = writeln!(text, "indexes under construction: {}, {percent:.0} % done", work.builds_running);
    }
    for what in damage {
        let _ = writeln!(text, "damaged: {what}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(index_losses: &[&str], (running, progress): (usize, f64), damage: &[&str], expected: &str) {
        let work = BackgroundStatistics {
            builds_running: running,
            build_progress: progress,
            builds: 7,
            build_steps: 9,
            sweeps_waiting: 0,
            sweeps: 0,
            sweep_steps: 0,
            expired_documents: 0,
        };
        let owned = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        assert_eq!(text(&[], &owned(index_losses), &work, &owned(damage)), expected);
    }

    #[test]
    fn damage_and_construction_are_told() {
        check(&[], (0, 1.0), &[], "ready\n");
        check(&[], (2, 0.374), &[], "ready\nindexes under construction: 2, 37 % done\n");
        let all = "ready\nthe index is damaged: 7.run is missing\ndamaged: 8.sst\n";
        check(&["7.run is missing"], (0, 1.0), &["8.sst"], all);
    }
}
