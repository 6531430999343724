//! What was counted, the file that keeps it, and the judgement of one beside the other.
//!
//! The file (`benches/cost.tsv`) has a line that says what counted, then a line for each operation and size.

use anyhow::Context as _;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::Command;

/// How much more or fewer instructions an operation may take before the file has to follow. Runs of one program on a quiet machine differ by
/// up to 3 %, of writes by up to 11 %: how many wait for one sync, and what is merged meanwhile, depends on how the threads take turns.
/// The other counts depend on it even more, and are shown only.
pub(crate) const TOLERANCE: f64 = 0.04;
pub(crate) const WRITE_TOLERANCE: f64 = 0.15;
const NAMES: [&str; 5] = ["instructions", "moved bytes", "allocations", "clock reads", "system calls"];
/// Above the lines that are printed.
pub(crate) const HEADING: &str = "operation                                documents   instructions      before  ratio  moved bytes  allocations  clock  system calls";

/// What one request costs.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Counts {
    pub(crate) instructions: f64,
    pub(crate) moved_bytes: f64,
    pub(crate) allocations: f64,
    pub(crate) clock_reads: f64,
    pub(crate) system_calls: f64,
}

impl Counts {
    fn values(self) -> [f64; 5] {
        [self.instructions, self.moved_bytes, self.allocations, self.clock_reads, self.system_calls]
    }

    fn of(values: [f64; 5]) -> Counts {
        let [instructions, moved_bytes, allocations, clock_reads, system_calls] = values;
        Counts { instructions, moved_bytes, allocations, clock_reads, system_calls }
    }

    pub(crate) fn divided_by(self, count: u64) -> Counts {
        Counts::of(self.values().map(|value| value / count as f64))
    }
}

/// The counts of an operation.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    pub(crate) operation: String,
    pub(crate) documents: u64,
    pub(crate) counts: Counts,
    /// How far the instructions may be from those of the file.
    pub(crate) tolerance: f64,
}

impl Row {
    /// The row as it is printed, with the instructions that the file has for it.
    pub(crate) fn beside(&self, known: Option<&Row>) -> String {
        let [instructions, moved, allocations, clock, calls] = self.counts.values();
        let (before, ratio) = known.map_or(("-".to_owned(), "-".to_owned()), |known| {
            let before = known.counts.instructions;
            (format!("{before:.0}"), format!("{:.3}", instructions / before))
        });
        format!(
            "{:40} {:>9} {instructions:>14.0} {before:>11} {ratio:>6} {moved:>12.0} {allocations:>12.1} {clock:>6.1} {calls:>13.1}",
            self.operation, self.documents
        )
    }
}

/// All counts, and what counted them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Table {
    environment: String,
    pub(crate) rows: Vec<Row>,
}

impl Table {
    pub(crate) fn new(environment: String) -> Table {
        Table { environment, rows: Vec::new() }
    }

    /// The counts in the file; an empty table where there is none.
    pub(crate) fn read() -> anyhow::Result<Table> {
        match std::fs::read_to_string(path()) {
            Ok(text) => Table::parse(&text),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Table::default()),
            Err(error) => Err(error).context("read cost.tsv"),
        }
    }

    fn parse(text: &str) -> anyhow::Result<Table> {
        let mut lines = text.lines();
        let environment = lines.next().and_then(|line| line.strip_prefix("# counted with "));
        let mut table = Table::new(environment.context("the first line says what counted")?.to_owned());
        for line in lines.filter(|line| !line.starts_with('#')) {
            let fields: Vec<&str> = line.split('\t').collect();
            let [operation, documents, values @ ..] = &fields[..] else {
                anyhow::bail!("short line: {line}")
            };
            let values: Result<Vec<f64>, _> = values.iter().map(|value| value.parse()).collect();
            let values: [f64; 5] = values?.try_into().ok().with_context(|| format!("five counts: {line}"))?;
            let (operation, documents) = ((*operation).to_owned(), documents.parse()?);
            let counts = Counts::of(values);
            table.rows.push(Row { operation, documents, counts, tolerance: TOLERANCE });
        }
        Ok(table)
    }

    fn text(&self) -> String {
        let mut text =
            format!("# counted with {}\n# operation\tdocuments\t{}\n", self.environment, NAMES.join("\t"));
        for row in &self.rows {
            let _ = write!(text, "{}\t{}", row.operation, row.documents);
            for (place, value) in row.counts.values().into_iter().enumerate() {
                let digits = usize::from(place >= 2);
                let _ = write!(text, "\t{value:.digits$}");
            }
            text.push('\n');
        }
        text
    }

    pub(crate) fn write(&self) -> anyhow::Result<()> {
        std::fs::write(path(), self.text()).context("write cost.tsv")
    }

    pub(crate) fn find(&self, row: &Row) -> Option<&Row> {
        self.rows.iter().find(|known| known.operation == row.operation && known.documents == row.documents)
    }

    /// These counts, with newer ones where there are some.
    pub(crate) fn with(mut self, newer: Table) -> Table {
        self.environment = newer.environment;
        for row in newer.rows {
            let place = self
                .rows
                .iter()
                .position(|known| known.operation == row.operation && known.documents == row.documents);
            match place {
                Some(place) => self.rows[place] = row,
                None => self.rows.push(row),
            }
        }
        self
    }
}

/// Beside this program's sources, so that a commit that changes a cost changes it too.
fn path() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("cost.tsv")
}

/// What the counts depend on besides our sources.
pub(crate) fn environment() -> anyhow::Result<String> {
    let version = |program: &str| -> anyhow::Result<String> {
        let output =
            Command::new(program).arg("--version").output().with_context(|| format!("run {program}"))?;
        let text = String::from_utf8_lossy(&output.stdout);
        Ok(text.lines().next().unwrap_or_default().trim().to_owned())
    };
    let library = version("ldd").map(|line| line.rsplit(' ').next().unwrap_or_default().to_owned());
    Ok(format!(
        "{}, {}, glibc {}, {}",
        version("rustc")?,
        version("valgrind")?,
        library.unwrap_or_else(|_| "unknown".to_owned()),
        std::env::consts::ARCH
    ))
}

/// Whether the counts are as the file has them; prints what is not.
pub(crate) fn judge(known: &Table, counted: &Table, is_whole: bool) -> bool {
    if known.environment != counted.environment {
        println!(
            "\nskipped: the file was counted with {}, this with {}",
            known.environment, counted.environment
        );
        return true;
    }
    let findings = findings(known, counted, is_whole);
    for finding in &findings {
        println!("{finding}");
    }
    if findings.is_empty() {
        println!(
            "\nall as in benches/cost.tsv, within {} %, writes {} %",
            TOLERANCE * 100.0,
            WRITE_TOLERANCE * 100.0
        );
    } else {
        println!(
            "\nIf a change makes an operation dearer on purpose, or cheaper, run `cargo xtask cost --update`, commit benches/cost.tsv \
             with it, and say why in the message."
        );
    }
    findings.is_empty()
}

fn findings(known: &Table, counted: &Table, is_whole: bool) -> Vec<String> {
    let mut findings = Vec::new();
    for row in &counted.rows {
        let Some(before) = known.find(row) else {
            findings.push(format!("NEW {}, {} documents: not in the file", row.operation, row.documents));
            continue;
        };
        let (old, new) = (before.counts.instructions, row.counts.instructions);
        if (new - old).abs() <= old * row.tolerance {
            continue;
        }
        let word = if new > old { "DEARER" } else { "CHEAPER" };
        findings.push(format!(
            "{word} {}, {} documents: {old:.0} -> {new:.0} instructions ({:+.1} %)",
            row.operation,
            row.documents,
            (new / old - 1.0) * 100.0
        ));
    }
    if is_whole {
        let gone = known.rows.iter().filter(|row| counted.find(row).is_none());
        findings.extend(gone.map(|row| format!("GONE {}, {} documents", row.operation, row.documents)));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(rows: &[(&str, f64)]) -> Table {
        let row = |(name, instructions): &(&str, f64)| Row {
            operation: (*name).to_owned(),
            documents: 1_000,
            counts: Counts { instructions: *instructions, allocations: 7.5, ..Counts::default() },
            tolerance: TOLERANCE,
        };
        Table { environment: "a compiler".to_owned(), rows: rows.iter().map(row).collect() }
    }

    #[test]
    fn a_table_is_read_as_it_was_written() {
        let written = table(&[("point read", 70_900.0), ("create", 400_000.0)]);
        let read = Table::parse(&written.text()).expect("a table");
        assert_eq!(read.text(), written.text());
        assert!(Table::parse("point read\t1000").is_err());
        assert!(Table::parse("# counted with x\npoint read\t1000\t1\t2").is_err());
    }

    #[test]
    fn what_grows_falls_appears_or_goes_is_found() {
        let known =
            table(&[("same", 100_000.0), ("dearer", 100_000.0), ("cheaper", 100_000.0), ("gone", 1.0)]);
        let counted =
            table(&[("same", 103_900.0), ("dearer", 104_100.0), ("cheaper", 95_900.0), ("new", 1.0)]);
        let words: Vec<String> = findings(&known, &counted, true)
            .iter()
            .map(|finding| finding.split(',').next().unwrap_or_default().to_owned())
            .collect();
        assert_eq!(words, ["DEARER dearer", "CHEAPER cheaper", "NEW new", "GONE gone"]);
        assert_eq!(findings(&known, &known, true), [""; 0]);
        assert_eq!(findings(&known, &table(&[("same", 100_000.0)]), false), [""; 0]);
    }

    #[test]
    fn counts_of_another_compiler_are_not_judged() {
        let known = table(&[("point read", 1_000.0)]);
        let counted = Table { environment: "another".to_owned(), ..table(&[("point read", 90_000.0)]) };
        assert!(judge(&known, &counted, true));
    }
}
