//! Runs a case file of the query language, or rewrites what it expects.
//!
//! In: the text of a file and an engine. Out: nothing if all cases hold, else a report of all that do not; or the text
//! with the expectations that failed replaced by today's answers, for a review.
//! Invariants
//! - A query is asked in every way that [`Stage::ways`] knows; pages give their rows in the order of the one page.
//!
//! Not here: the form of files (`case_file`), what counts as equal (`answer`).

use super::answer::{QueryAnswer, refusal, refusal_lines, refusal_matches, rows_match, same, shown};
use super::case_file::{self, Block, Case, Refusal, Rows, ValueEntry, Values};
use super::stage::{ONE_PAGE, Set, Stage, Way, read_query};
use crate::json::Json;
use crate::server::EngineKind;
use std::fmt::Write as _;
use std::ops::Range;

/// New lines for a place in a file.
type Replacement = (Range<usize>, Vec<String>);

/// Runs a file; the error tells of every case that does not hold.
pub fn run(text: &str, engine: EngineKind) -> Result<usize, String> {
    let mut run = Run::new(engine);
    let case_count = run.file(text)?;
    if run.reports.is_empty() { Ok(case_count) } else { Err(run.reports.concat()) }
}

/// The text with today's answers in place of expectations that fail.
pub fn update(text: &str, engine: EngineKind) -> Result<String, String> {
    let mut run = Run::new(engine);
    run.file(text)?;
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    for (place, new) in run.replacements.into_iter().rev() {
        lines.splice(place, new);
    }
    Ok(lines.join("\n") + "\n")
}

struct Run {
    stage: Stage,
    set: Set,
    reports: Vec<String>,
    replacements: Vec<Replacement>,
}

impl Run {
    fn new(engine: EngineKind) -> Run {
        let mut stage = Stage::new(engine);
        let nothing = Json::parse("{}").expect("JSON of ours");
        let set = stage.furnish(&nothing, &[]).expect("make an empty container");
        Run { stage, set, reports: Vec::new(), replacements: Vec::new() }
    }

    fn file(&mut self, text: &str) -> Result<usize, String> {
        let mut case_count = 0;
        for block in case_file::parse(text)? {
            case_count += 1;
            match block {
                Block::Container(block) => {
                    case_count -= 1;
                    let set = self.stage.furnish(&block.definition, &block.documents);
                    let set = set.and_then(|set| {
                        self.stage.define_functions(&set, &block.functions)?;
                        Ok(set)
                    });
                    self.set = set.map_err(|error| format!("line {}: {error}", block.line))?;
                }
                Block::Query(case) => self.query(&case)?,
                Block::Error(case) => self.refused(&case)?,
                Block::Plan(case) => self.plan(&case),
                Block::Values(values) => {
                    case_count += values.entries.len() - 1;
                    self.values(&values)?;
                }
            }
        }
        Ok(case_count)
    }

    fn report(&mut self, line: usize, query: &str, problem: &str) {
        let mut report = format!("line {line}: {problem}\n  query:\n");
        for line in query.lines() {
            let _ = writeln!(report, "    {line}");
        }
        self.reports.push(report);
    }

    fn query(&mut self, case: &Case<Rows>) -> Result<(), String> {
        let query = match read_query(&case.query, &case.setting.parameters) {
            Ok(query) => query,
            Err(error) => {
                self.report(case.line, &case.query, &format!("refused:\n{}", shown(&Err(error))));
                return Ok(());
            }
        };
        if let Err(error) = self.stage.explain(&query, &self.set) {
            self.report(case.line, &case.query, &format!("no plan:\n{}", shown(&Err(error))));
            return Ok(());
        }
        let mut whole: Option<Vec<Json>> = None;
        for way in self.stage.ways(&self.set, &case.setting)? {
            let answer = self.stage.ask(&query, &way);
            let holds = match &answer {
                Ok(rows) => rows_match(&case.expected, rows, case.setting.tolerance),
                Err(_) => false,
            };
            let problem = match (&answer, &whole) {
                _ if !holds => format!("{}: got\n{}", way.name, shown(&answer)),
                (Ok(rows), Some(whole)) if way.page_size != ONE_PAGE && paged_differs(rows, whole) => {
                    format!("{}: other order than in one page:\n{}", way.name, shown(&answer))
                }
                _ => String::new(),
            };
            if way.page_size == ONE_PAGE {
                whole = answer.as_ref().ok().cloned();
            }
            if !problem.is_empty() {
                if let (Ok(rows), true) = (&answer, way.page_size == ONE_PAGE) {
                    let lines = rows.iter().map(Json::to_string).collect();
                    self.replacements.push((case.expected_lines.clone(), lines));
                }
                self.report(case.line, &case.query, &problem);
                return Ok(());
            }
        }
        Ok(())
    }

    fn refused(&mut self, case: &Case<Refusal>) -> Result<(), String> {
        let query = read_query(&case.query, &case.setting.parameters);
        let ways = self.stage.ways(&self.set, &case.setting)?;
        let answers: Vec<(&str, QueryAnswer)> = match query {
            Err(error) => vec![("parse", Err(error))],
            Ok(query) => ways.iter().map(|way: &Way| (way.name, self.stage.ask(&query, way))).collect(),
        };
        for (name, answer) in answers {
            let actual = answer.as_ref().err().map(|error| refusal(&case.query, error));
            if actual.as_ref().is_some_and(|actual| refusal_matches(&case.expected, actual)) {
                continue;
            }
            let got =
                actual.as_ref().map_or_else(|| shown(&answer), |actual| refusal_lines(actual).join("\n    "));
            let wanted = refusal_lines(&case.expected).join("\n    ");
            self.report(case.line, &case.query, &format!("{name}: expected\n    {wanted}\n  got\n    {got}"));
            if let Some(actual) = actual {
                self.replacements.push((case.expected_lines.clone(), refusal_lines(&actual)));
            }
            return Ok(());
        }
        Ok(())
    }

    fn plan(&mut self, case: &Case<Vec<String>>) {
        let query = read_query(&case.query, &case.setting.parameters);
        let plan = match query.and_then(|query| self.stage.explain(&query, &self.set)) {
            Ok(plan) => plan,
            Err(error) => {
                self.report(case.line, &case.query, &format!("no plan:\n{}", shown(&Err(error))));
                return;
            }
        };
        let lines: Vec<String> = plan.lines().map(str::to_owned).collect();
        if lines != case.expected {
            self.report(case.line, &case.query, &format!("the plan is\n    {}", lines.join("\n    ")));
            self.replacements.push((case.expected_lines.clone(), lines));
        }
    }

    fn values(&mut self, values: &Values) -> Result<(), String> {
        let way = self.stage.ways(&self.set, &values.setting)?.swap_remove(0);
        for entry in &values.entries {
            let reads = entry.reads_document();
            if reads && self.set.document_count != 1 {
                return Err(format!(
                    "line {}: expressions over c need a container of one document",
                    entry.line
                ));
            }
            let source = if reads { " FROM c" } else { "" };
            let text = format!("SELECT VALUE {}{source}", entry.expression);
            let answer =
                read_query(&text, &values.setting.parameters).and_then(|query| self.stage.ask(&query, &way));
            let holds = match (&answer, &entry.expected) {
                (Ok(rows), None) => rows.is_empty(),
                (Ok(rows), Some(expected)) => {
                    matches!(rows.as_slice(), [row] if same(expected, row, values.setting.tolerance))
                }
                (Err(_), _) => false,
            };
            if !holds {
                self.wrong_value(entry, &answer);
            }
        }
        Ok(())
    }

    fn wrong_value(&mut self, entry: &ValueEntry, answer: &QueryAnswer) {
        let expected = entry.expected.as_ref().map_or("undefined".to_owned(), Json::to_string);
        let got = match answer {
            Ok(rows) => rows.first().map_or("undefined".to_owned(), Json::to_string),
            Err(_) => shown(answer).trim().to_owned(),
        };
        self.reports.push(format!("line {}: {} => {expected}, got {got}\n", entry.line, entry.expression));
        if answer.is_ok() {
            let line = vec![format!("{} => {got}", entry.expression)];
            self.replacements.push((entry.line - 1..entry.line, line));
        }
    }
}

/// Whether pages give other rows, or another order, than the one page before them.
fn paged_differs(paged: &[Json], whole: &[Json]) -> bool {
    paged.len() != whole.len() || !paged.iter().zip(whole).all(|(paged, whole)| same(whole, paged, 0.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "container {\"partitionKey\":\"/pk\"}\ndocs\n{\"id\":\"1\",\"pk\":\"a\",\"n\":1}\n\n\
                        query Wrong.\nfrom: guess\nSELECT c.n FROM c\n----\n{\"n\":2}\n\n\
                        error Wrong.\nfrom: guess\nSELECT FROM c\n----\n400 SC9999\n\n\
                        values Wrong and right.\nfrom: guess\nc.n => 7\n1 + 1 => 2\n";

    #[test]
    fn wrong_expectations_are_reported_and_updated() {
        let report = run(TEXT, EngineKind::Memory).unwrap_err();
        for part in ["line 5: open: got", "{\"n\":1}", "line 11: parse: expected", "line 19: c.n => 7, got 1"]
        {
            assert!(report.contains(part), "{part} in {report}");
        }
        let updated = update(TEXT, EngineKind::Memory).unwrap();
        assert!(
            updated.contains("----\n{\"n\":1}\n") && updated.contains("c.n => 1\n1 + 1 => 2\n"),
            "{updated}"
        );
        assert_eq!(run(&updated, EngineKind::Memory), Ok(4));
        assert_eq!(update(&updated, EngineKind::Memory).unwrap(), updated);
    }
}
