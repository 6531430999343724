//! What an import has done: counts, the file of failures, and the sentences about it.

use crate::ToolReport;
use crate::bulk_writer::DocumentEnd;
use crate::error::ToolError;
use astrarium_client::Traffic;
use astrarium_value::json::{Text, write_string};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};

/// Counts of rows.
#[derive(Debug, Clone, Default)]
pub(super) struct ImportCounts {
    /// Rows dealt with by earlier runs.
    pub(super) before: u64,
    pub(super) rows: u64,
    pub(super) bytes: u64,
    pub(super) written: u64,
    pub(super) existed: u64,
    pub(super) failed: u64,
    /// Failures because there is such a document.
    pub(super) conflicts: u64,
    /// The first reasons of failures, by row.
    pub(super) reasons: BTreeMap<u64, String>,
}

impl ImportCounts {
    pub(super) fn settled(&self) -> u64 {
        self.before + self.written + self.existed + self.failed
    }

    /// Every row is dealt with in one way, or something was lost on the way.
    pub(super) fn check_sum(&self) -> Result<(), ToolError> {
        let dealt_with = self.written + self.existed + self.failed;
        if dealt_with == self.rows {
            return Ok(());
        }
        Err(ToolError::input(format!(
            "{} rows were read, and {dealt_with} dealt with: this is a bug",
            self.rows
        )))
    }

    pub(super) fn count(&mut self, number: u64, end: &DocumentEnd, shown_max: usize) {
        match end {
            DocumentEnd::Written => self.written += 1,
            DocumentEnd::Existed => self.existed += 1,
            DocumentEnd::Failed(status, reason) => {
                self.conflicts += u64::from(*status == 409);
                self.fail(number, &format!("{status}: {reason}"), shown_max);
            }
        }
    }

    pub(super) fn fail(&mut self, number: u64, reason: &str, shown_max: usize) {
        self.failed += 1;
        // Rows are dealt with in any order; those of the lowest numbers are told.
        let is_early = self.reasons.last_key_value().is_none_or(|(last, _)| number < *last);
        if self.reasons.len() < shown_max || is_early {
            let reason: String = reason.chars().take(300).collect();
            self.reasons.insert(number, format!("  row {number}: {reason}"));
        }
        if self.reasons.len() > shown_max {
            self.reasons.pop_last();
        }
    }

    pub(super) fn remark(&self, traffic: Traffic) -> String {
        let mut parts = vec![format!("{:.0} RU", traffic.charge)];
        if self.failed > 0 {
            parts.push(format!("{} failed", self.failed));
        }
        if traffic.throttled > 0 {
            parts.push(format!("asked to wait {} times", traffic.throttled));
        }
        parts.join(", ")
    }

    pub(super) fn report(&self, container: &str, seconds: f64, traffic: Traffic) -> ToolReport {
        let mut text = format!("{} documents written to {container}", self.written);
        if self.before > 0 {
            let _ = write!(text, ", after {} rows of an earlier run", self.before);
        }
        if self.existed > 0 {
            let _ = write!(text, ", {} existed and stay", self.existed);
        }
        if self.failed > 0 {
            let _ = write!(text, ", {} failed", self.failed);
        }
        let rate = if seconds > 0.0 { self.written as f64 / seconds } else { 0.0 };
        let _ = write!(text, " in {seconds:.1} s ({rate:.0}/s), {:.0} RU", traffic.charge);
        if traffic.throttled > 0 {
            let _ = write!(text, ", asked to wait {} times", traffic.throttled);
        }
        for reason in self.reasons.values() {
            text.push('\n');
            text.push_str(reason);
        }
        if self.conflicts > 0 {
            text.push_str(
                "\n--mode upsert replaces documents that exist, --mode skip leaves them as they are",
            );
        }
        ToolReport { text, is_complete: self.failed == 0 }
    }

    pub(super) fn dry_report(&self, container: &str, name: &str) -> ToolReport {
        let mut text = format!(
            "{} rows, {} of them good, {} bytes; nothing was written to {container}",
            self.rows,
            self.rows - self.failed,
            self.bytes
        );
        debug_assert!(container.ends_with(name), "both name one container");
        for reason in self.reasons.values() {
            text.push('\n');
            text.push_str(reason);
        }
        ToolReport { text, is_complete: self.failed == 0 }
    }

    /// An error that says what was done before it.
    pub(super) fn interrupted(&self, error: &ToolError, resume: Option<&Path>) -> ToolError {
        let next = match resume {
            Some(file) => format!("The same command goes on from there, by {}", file.display()),
            None if self.written == 0 => "Nothing was written".to_owned(),
            None => {
                "--mode skip leaves those out next time; --resume FILE remembers how far it was".to_owned()
            }
        };
        ToolError::input(format!("{error}. {} documents were written before. {next}", self.written))
    }
}

/// The file of rows that failed.
pub(super) struct FailedRows {
    file: Option<(BufWriter<File>, PathBuf)>,
}

impl FailedRows {
    pub(super) fn open(path: Option<&Path>, goes_on: bool) -> Result<FailedRows, ToolError> {
        let Some(path) = path else { return Ok(FailedRows { file: None }) };
        let mut options = OpenOptions::new();
        options.create(true).write(true).append(goes_on).truncate(!goes_on);
        let file = options.open(path).map_err(ToolError::file("open", path))?;
        Ok(FailedRows { file: Some((BufWriter::new(file), path.to_owned())) })
    }

    /// `{"row":7,"status":409,"reason":"…","document":{…}}`; what is no JSON stands as `"text"`.
    pub(super) fn write(
        &mut self,
        number: u64,
        status: u16,
        reason: &str,
        raw: &[u8],
    ) -> Result<(), ToolError> {
        let Some((file, path)) = &mut self.file else { return Ok(()) };
        let mut line = format!("{{\"row\":{number},\"status\":{status},\"reason\":").into_bytes();
        write_string(reason, &mut line);
        let document = Text::parse(raw).is_ok() && !raw.contains(&b'\n');
        if document {
            line.extend_from_slice(b",\"document\":");
            line.extend_from_slice(raw);
        } else {
            line.extend_from_slice(b",\"text\":");
            write_string(&String::from_utf8_lossy(raw), &mut line);
        }
        line.extend_from_slice(b"}\n");
        file.write_all(&line).map_err(ToolError::file("write", path))
    }

    pub(super) fn flush(&mut self) -> Result<(), ToolError> {
        match &mut self.file {
            Some((file, path)) => file.flush().map_err(ToolError::file("write", path)),
            None => Ok(()),
        }
    }
}
