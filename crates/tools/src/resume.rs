//! How far an import is, in a file, so that it can go on after an interruption without writing anything twice.
//!
//! The first line says which import it is; every other line how far it is: up to row `done` everything is dealt with, and no row after `sent` was
//! ever sent. `sent` is written before the rows are. So after an interruption only rows between the two may have been written, and those are
//! compared with what is there.

use crate::error::ToolError;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};

/// How many rows may be sent beyond what the file says before it is written again.
const AHEAD: u64 = 20_000;
/// Longest line of the file.
const LINE_BYTES_MAX: u64 = 1 << 20;

/// How far an import is.
#[derive(Debug)]
pub(crate) struct ImportProgress {
    file: Option<(File, PathBuf)>,
    /// Everything up to here is dealt with.
    pub(crate) done: u64,
    /// Nothing after this was sent, as far as the file says.
    sent: u64,
    noted: u64,
    out_of_order: BTreeSet<u64>,
}

/// Which import a file is about, and how far it is.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct EarlierRun {
    pub(crate) import_id: String,
    pub(crate) done: u64,
    pub(crate) sent: u64,
}

/// What the file says of an earlier run of this import; none if there is no file. One of another import is refused.
pub(crate) fn earlier(path: &Path, identity: &Value) -> Result<Option<EarlierRun>, ToolError> {
    // Opening a pipe would wait for its writer.
    if std::fs::metadata(path).is_ok_and(|found| !found.is_file()) {
        let shown = path.display();
        return Err(ToolError::input(format!("--resume {shown} is no plain file; give a name that is free")));
    }
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(ToolError::file("open", path)(error)),
    };
    let bad = |what: &str| {
        ToolError::input(format!(
            "{} is not a resume file of this import: {what}. Give another file, or remove it to begin anew",
            path.display()
        ))
    };
    let mut lines = Vec::new();
    let mut reader = BufReader::new(file);
    loop {
        let mut line = Vec::new();
        let read = std::io::Read::take(&mut reader, LINE_BYTES_MAX).read_until(b'\n', &mut line);
        if read.map_err(ToolError::file("read", path))? == 0 {
            break;
        }
        // The last line may have been cut.
        if line.last() == Some(&b'\n')
            && let Ok(value) = serde_json::from_slice::<Value>(&line)
        {
            match lines.len() {
                0 | 1 => lines.push(value),
                _ => lines[1] = value,
            }
        } else if lines.is_empty() {
            return Err(bad("it does not say which import it is about"));
        }
    }
    let Some(head) = lines.first() else { return Ok(None) };
    let Some(import_id) = head.get("import").and_then(Value::as_str) else {
        return Err(bad("it does not say which import it is about"));
    };
    if let Some(members) = identity.as_object() {
        for (name, value) in members {
            let known = head.get(name).unwrap_or(&Value::Null);
            if known != value && name == "containerRid" {
                return Err(bad("the container was removed since, and made anew under its name"));
            }
            if known != value {
                return Err(bad(&format!("its {name} is {known}, this one's {value}")));
            }
        }
    }
    let number = |name: &str| lines.get(1).and_then(|line| line.get(name)).and_then(Value::as_u64);
    let (done, sent) = (number("done").unwrap_or(0), number("sent").unwrap_or(0));
    Ok(Some(EarlierRun { import_id: import_id.to_owned(), done, sent: sent.max(done) }))
}

impl ImportProgress {
    /// Begins or goes on; without a path nothing is kept.
    pub(crate) fn begin(
        path: Option<&Path>,
        identity: &Value,
        import_id: &str,
        earlier: Option<&EarlierRun>,
    ) -> Result<ImportProgress, ToolError> {
        let done = earlier.map_or(0, |run| run.done);
        let sent = earlier.map_or(0, |run| run.sent);
        let mut progress =
            ImportProgress { file: None, done, sent, noted: done, out_of_order: BTreeSet::new() };
        if let Some(path) = path {
            let file = OpenOptions::new()
                .create(true)
                .append(true)
                .open(path)
                .map_err(ToolError::file("open", path))?;
            progress.file = Some((file, path.to_owned()));
            if earlier.is_none() {
                let mut head = identity.clone();
                head["import"] = json!(import_id);
                progress.line(&head)?;
            } else {
                // What was cut stays alone on its line.
                progress.write(b"\n")?;
            }
        }
        Ok(progress)
    }

    /// To be called before a row is sent.
    pub(crate) fn sending(&mut self, row: u64) -> Result<(), ToolError> {
        if row > self.sent {
            self.sent = row + AHEAD;
            self.note()?;
        }
        Ok(())
    }

    /// A row is dealt with.
    pub(crate) fn settle(&mut self, row: u64) {
        if row != self.done + 1 {
            self.out_of_order.insert(row);
            return;
        }
        self.done = row;
        while self.out_of_order.remove(&(self.done + 1)) {
            self.done += 1;
        }
    }

    /// How many rows are dealt with before one that is not.
    pub(crate) fn waiting(&self) -> usize {
        self.out_of_order.len()
    }

    /// Writes how far it is, if there is something new.
    pub(crate) fn note_done(&mut self) -> Result<(), ToolError> {
        if self.done > self.noted { self.note() } else { Ok(()) }
    }

    fn note(&mut self) -> Result<(), ToolError> {
        self.noted = self.done;
        let line = json!({"done": self.done, "sent": self.sent});
        self.line(&line)
    }

    fn line(&mut self, value: &Value) -> Result<(), ToolError> {
        self.write(format!("{value}\n").as_bytes())
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), ToolError> {
        let Some((file, path)) = &mut self.file else { return Ok(()) };
        file.write_all(bytes).map_err(ToolError::file("write", path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_sent_is_known_afterwards() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("resume");
        let identity = json!({"target": "d/c", "bytes": 7});
        assert_eq!(earlier(&path, &identity).unwrap(), None);
        let mut progress = ImportProgress::begin(Some(&path), &identity, "x", None).unwrap();
        progress.sending(1).unwrap();
        for row in [2, 3, 1, 5] {
            progress.settle(row);
        }
        assert_eq!((progress.done, progress.waiting()), (3, 1));
        progress.note_done().unwrap();
        let run = earlier(&path, &identity).unwrap().unwrap();
        assert_eq!(run, EarlierRun { import_id: "x".to_owned(), done: 3, sent: 1 + AHEAD });
        // A line that was cut says nothing, and spoils nothing that follows.
        std::fs::write(&path, [std::fs::read(&path).unwrap(), b"{\"done\":9".to_vec()].concat()).unwrap();
        assert_eq!(earlier(&path, &identity).unwrap().unwrap(), run);
        let mut again = ImportProgress::begin(Some(&path), &identity, "x", Some(&run)).unwrap();
        again.settle(4);
        again.note_done().unwrap();
        assert_eq!(earlier(&path, &identity).unwrap().unwrap().done, 4);
        let other = earlier(&path, &json!({"target": "d/e", "bytes": 7})).unwrap_err().to_string();
        assert!(other.contains("target is \"d/c\", this one's \"d/e\""), "{other}");
        std::fs::write(&path, "hello\nworld\n").unwrap();
        assert!(earlier(&path, &identity).is_err());
        std::fs::write(&path, "").unwrap();
        assert_eq!(earlier(&path, &identity).unwrap(), None);
    }
}
