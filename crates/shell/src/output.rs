//! Standard output: straight to where it goes, or, when it is longer than the terminal, through a pager.
//!
//! Invariants
//! - No pager unless standard output is a terminal and the text does not fit on it.
//! - Whoever stops reading ends the statement, not the program with a panic. What cannot be written for another reason is a failure.

use crate::failure::ShellFailure;
use crate::terminal::StandardStreams;
use astrarium_client::harmless;
use std::borrow::Cow;
use std::io::Write as _;
use std::process::{Child, Command, Stdio};
use unicode_width::UnicodeWidthStr as _;

/// Bytes that are held before they are written to something that is no terminal.
const HELD_BYTES: usize = 64 << 10;

/// What statements write to.
pub(crate) struct ShellOutput {
    surroundings: StandardStreams,
    held: Vec<u8>,
    held_lines: usize,
    pager: Option<Child>,
    /// Whether long output goes through a pager.
    pub(crate) pages: bool,
    /// Whether lines are shown as they come, for what has no end.
    pub(crate) is_live: bool,
}

impl ShellOutput {
    pub(crate) fn new(surroundings: StandardStreams, pages: bool) -> ShellOutput {
        ShellOutput { surroundings, held: Vec::new(), held_lines: 0, pager: None, pages, is_live: false }
    }

    pub(crate) fn surroundings(&self) -> StandardStreams {
        self.surroundings
    }

    /// Text from a server as it may be shown: harmless on a terminal, unchanged elsewhere. Lines stay.
    pub(crate) fn for_eyes<'a>(&self, text: &'a str) -> Cow<'a, str> {
        if !self.surroundings.shows || text.lines().all(|line| matches!(harmless(line), Cow::Borrowed(_))) {
            return Cow::Borrowed(text);
        }
        Cow::Owned(text.split('\n').map(harmless).collect::<Vec<_>>().join("\n"))
    }

    /// The same of JSON; escapes are JSON's own, so it stays what it was.
    pub(crate) fn json_for_eyes<'a>(&self, text: &'a str) -> Cow<'a, str> {
        self.for_eyes(text)
    }

    pub(crate) fn line(&mut self, line: &str) -> Result<(), ShellFailure> {
        self.held.extend_from_slice(line.as_bytes());
        self.held.push(b'\n');
        self.count(line);
        self.pass_on()
    }

    pub(crate) fn text(&mut self, text: &str) -> Result<(), ShellFailure> {
        self.held.extend_from_slice(text.as_bytes());
        self.count(text);
        self.pass_on()
    }

    /// Shows what is held, and waits until the pager is left.
    pub(crate) fn finish(&mut self) -> Result<(), ShellFailure> {
        let written = self.write_held();
        self.is_live = false;
        if let Some(mut pager) = self.pager.take() {
            drop(pager.stdin.take());
            let _ = pager.wait();
            return Ok(());
        }
        written
    }

    fn count(&mut self, text: &str) {
        if let Some((columns, _)) = self.surroundings.size() {
            self.held_lines += text.lines().map(|line| line.width().div_ceil(columns).max(1)).sum::<usize>();
        }
    }

    fn pass_on(&mut self) -> Result<(), ShellFailure> {
        if self.is_live || self.pager.is_some() {
            return self.write_held();
        }
        let Some((_, lines)) = self.surroundings.size() else {
            return if self.held.len() >= HELD_BYTES { self.write_held() } else { Ok(()) };
        };
        if self.held_lines + 2 <= lines {
            return Ok(());
        }
        if self.pages {
            self.pager = start_pager();
        }
        self.is_live = self.pager.is_none();
        self.write_held()
    }

    fn write_held(&mut self) -> Result<(), ShellFailure> {
        self.held_lines = 0;
        let held = std::mem::take(&mut self.held);
        let written = if let Some(pager) = self.pager.as_mut().and_then(|pager| pager.stdin.as_mut()) {
            pager.write_all(&held)
        } else {
            let mut stdout = std::io::stdout().lock();
            stdout.write_all(&held).and_then(|()| stdout.flush())
        };
        match written {
            Ok(()) => Ok(()),
            Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
                Err(ShellFailure::told(format!("write the output: {error}")))
            }
            Err(_) if self.pager.is_some() => Err(ShellFailure::SeenEnough),
            Err(_) => Err(ShellFailure::OutputClosed),
        }
    }
}

/// `$PAGER`, or `less`; none if it is empty or cannot be started.
fn start_pager() -> Option<Child> {
    let pager = std::env::var("PAGER").unwrap_or_else(|_| "less".to_owned());
    if pager.trim().is_empty() {
        return None;
    }
    let mut command = Command::new("sh");
    command.arg("-c").arg(pager).stdin(Stdio::piped());
    if std::env::var_os("LESS").is_none() {
        // Colours pass, the screen stays, lines are not folded.
        command.env("LESS", "RXS");
    }
    command.spawn().ok()
}
