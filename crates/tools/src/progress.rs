//! What is told to people on standard error: sentences, and a line that tells how far it is where there is a terminal.

use astrarium_client::{harmless, harmless_lines};
use astrarium_env::Instant;
use std::fmt::Write as _;
use std::io::{IsTerminal as _, Write as _};
use std::time::Duration;

/// How often the line is written anew.
const INTERVAL: Duration = Duration::from_millis(200);

/// Says something on standard error, lines and all. If nobody can be told, that is no reason to end.
pub(crate) fn tell(text: &str) {
    let _ = writeln!(std::io::stderr(), "{}", harmless_lines(text));
}

/// The line of a running command.
#[derive(Debug)]
pub(crate) struct ProgressLine {
    is_shown: bool,
    began: Instant,
    shown_at: Option<Instant>,
}

impl ProgressLine {
    pub(crate) fn new(is_quiet: bool) -> ProgressLine {
        // A dumb terminal has no line that could be written anew.
        let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        let is_shown = !is_quiet && !is_dumb && std::io::stderr().is_terminal();
        ProgressLine { is_shown, began: Instant::now(), shown_at: None }
    }

    /// Shows how many rows are done, how much of how much that is (bytes or documents), and what else there is to tell.
    pub(crate) fn show(&mut self, rows: u64, share: Option<(u64, u64)>, more: &str) {
        if !self.is_shown || self.shown_at.is_some_and(|shown| shown.elapsed() < INTERVAL) {
            return;
        }
        self.shown_at = Some(Instant::now());
        let elapsed = self.began.elapsed().as_secs_f64();
        // A terminal may be narrow: what does not fit is cut, never wrapped.
        let line: String =
            harmless(&line(rows, elapsed, share, more)).chars().take(columns().saturating_sub(1)).collect();
        let _ = write!(std::io::stderr(), "\r{line}\u{1b}[K");
    }

    /// Takes the line away.
    pub(crate) fn end(&mut self) {
        if self.is_shown && self.shown_at.take().is_some() {
            let _ = write!(std::io::stderr(), "\r\u{1b}[K");
        }
    }

    /// Seconds since it began.
    pub(crate) fn seconds(&self) -> f64 {
        self.began.elapsed().as_secs_f64()
    }
}

fn line(rows: u64, elapsed: f64, share: Option<(u64, u64)>, more: &str) -> String {
    let rate = if elapsed > 0.0 { rows as f64 / elapsed } else { 0.0 };
    let mut line = format!("{rows} rows, {rate:.0}/s");
    if let Some((read, total)) = share.filter(|(_, total)| *total > 0) {
        let share = (read as f64 / total as f64).min(1.0);
        let _ = write!(line, ", {:.0} %", share * 100.0);
        if share > 0.01 && elapsed > 1.0 {
            let left = (elapsed / share - elapsed).round() as u64;
            let _ = write!(line, ", {}:{:02} left", left / 60, left % 60);
        }
    }
    if !more.is_empty() {
        line.push_str(", ");
        line.push_str(more);
    }
    line
}

/// The width of the terminal, or a usual one.
fn columns() -> usize {
    let told = rustix::termios::tcgetwinsize(std::io::stderr()).ok().map(|size| usize::from(size.ws_col));
    told.filter(|columns| *columns > 0).unwrap_or(80)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines() {
        assert_eq!(line(100, 10.0, None, ""), "100 rows, 10/s");
        assert_eq!(line(100, 10.0, Some((25, 100)), "3 failed"), "100 rows, 10/s, 25 %, 0:30 left, 3 failed");
        assert_eq!(line(0, 0.0, Some((0, 0)), ""), "0 rows, 0/s");
    }
}
