//! A pseudo-terminal with a shell in it: keys go in, what it shows is looked at.

use crate::site::Site;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use std::fs::{File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::process::Child;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Tells the program of the tests to take its standard input for its terminal.
pub(crate) const OWN_TERMINAL: &str = "ASTRARIUM_SHELL_TEST_TERMINAL";
/// Longest time for something to appear.
const PATIENCE: Duration = Duration::from_mins(5);

/// A shell in a terminal; killed when it is dropped.
pub(crate) struct Terminal {
    master: File,
    seen: Arc<Mutex<Vec<u8>>>,
    /// How much of the plain text was expected already.
    looked: usize,
    child: Child,
}

impl Terminal {
    /// Starts a shell in a terminal of so many columns, and waits for its prompt.
    pub(crate) fn start(
        site: &Site,
        columns: u16,
        arguments: &[&str],
        variables: &[(&str, &str)],
    ) -> Terminal {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        tcsetwinsize(&master, Winsize { ws_col: columns, ws_row: 24, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap();
        let path = std::path::Path::new(std::ffi::OsStr::from_bytes(name.as_bytes())).to_owned();
        let slave = || OpenOptions::new().read(true).write(true).open(&path).unwrap();
        let mut command = site.command(arguments);
        command.env(OWN_TERMINAL, "1").envs(variables.iter().copied());
        command.stdin(slave()).stdout(slave()).stderr(slave());
        let child = command.spawn().unwrap();
        drop(command);
        let master = File::from(master);
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (mut reader, shared) = (master.try_clone().unwrap(), Arc::clone(&seen));
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(length) = reader.read(&mut buffer)
                && length > 0
            {
                shared.lock().unwrap().extend_from_slice(&buffer[..length]);
            }
        });
        let mut terminal = Terminal { master, seen, looked: 0, child };
        terminal.expect("> ");
        terminal
    }

    pub(crate) fn send(&mut self, keys: &str) {
        self.master.write_all(keys.as_bytes()).unwrap();
    }

    /// Waits until a text appears after what was expected before.
    #[track_caller]
    pub(crate) fn expect(&mut self, text: &str) -> String {
        let began = Instant::now();
        loop {
            let plain = plain(&self.raw());
            if let Some(at) = plain.get(self.looked..).and_then(|rest| rest.find(text)) {
                let before = plain[self.looked..self.looked + at].to_owned();
                self.looked += at + text.len();
                return before;
            }
            assert!(
                began.elapsed() < PATIENCE,
                "{text:?} does not appear in {:?}",
                &plain[self.looked.min(plain.len())..]
            );
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Types a line, and gives what is shown up to the end of its figures.
    #[track_caller]
    pub(crate) fn say(&mut self, line: &str) -> String {
        self.send(&format!("{line}\r"));
        let shown = self.expect(" ms");
        self.expect("> ");
        shown
    }

    /// Everything that was shown, escape sequences included.
    pub(crate) fn raw(&self) -> String {
        String::from_utf8_lossy(&self.seen.lock().unwrap()).into_owned()
    }

    /// Leaves with Ctrl-D: the exit code.
    #[track_caller]
    pub(crate) fn leave(mut self) -> i32 {
        self.send("\u{4}");
        let began = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code().unwrap();
            }
            assert!(began.elapsed() < PATIENCE, "the shell does not end: {:?}", plain(&self.raw()));
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Text without escape sequences.
pub(crate) fn plain(raw: &str) -> String {
    let mut text = String::new();
    let mut characters = raw.chars().peekable();
    while let Some(character) = characters.next() {
        if character != '\u{1b}' {
            text.push(character);
            continue;
        }
        if characters.next_if_eq(&'[').is_some() {
            while characters.next_if(|one| !one.is_ascii_alphabetic()).is_some() {}
        }
        characters.next();
    }
    text
}
