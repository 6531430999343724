//! ORDER BY RANK: scores of every row, ranks of every score, and their fusion.
//!
//! Full-text scores need statistics over all documents first, so documents are read twice. Ranks start at 1, equal
//! scores share one, and a row without a score ranks last. Fused score: the sum of weight / (60 + rank).

use crate::pipeline::Machine;
use astrarium_sql_functions::{Context, ScalarFunction, find};
use astrarium_sql_plan::evaluate::EvaluateError;
use astrarium_sql_plan::plan::{RankComponent, Score};
use astrarium_value::Value;

/// The constant of reciprocal rank fusion.
const RANK_CONSTANT: f64 = 60.0;

/// Statistics of one full-text component over all documents.
#[derive(Debug, Clone, Default)]
pub(crate) struct RankStatistics {
    documents: u64,
    words: f64,
    hits: Vec<f64>,
}

/// A row with its scores.
pub(crate) struct ScoredRow {
    pub(crate) scores: Vec<Option<f64>>,
    pub(crate) place: (u64, u32),
    pub(crate) json: Vec<u8>,
}

fn function(name: &str) -> Result<&'static ScalarFunction, EvaluateError> {
    find(name).ok_or_else(|| EvaluateError::Query(format!("The function {name} is not available.")))
}

/// Takes one document into the statistics of all components.
pub(crate) fn count(
    machine: &Machine<'_>,
    components: &[RankComponent],
    statistics: &mut Vec<RankStatistics>,
) -> Result<(), EvaluateError> {
    statistics.resize_with(components.len(), RankStatistics::default);
    for (component, own) in components.iter().zip(statistics) {
        own.documents += 1;
        let Score::FullText { text, terms, language } = &component.score else { continue };
        let text = machine.evaluate(text)?;
        let context = Context { full_text_language: *language, ..machine.context };
        let words = (function("_FULLTEXTWORDCOUNT")?.evaluate)(&context, std::slice::from_ref(&text));
        if let Value::Number(words) = words {
            own.words += words;
        }
        own.hits.resize(terms.len(), 0.0);
        for (hits, term) in own.hits.iter_mut().zip(terms) {
            let arguments = [text.clone(), machine.evaluate(term)?];
            if (function("FULLTEXTCONTAINS")?.evaluate)(&context, &arguments) == Value::Bool(true) {
                *hits += 1.0;
            }
        }
    }
    Ok(())
}

/// Adds the statistics of other documents.
pub(crate) fn merge(statistics: &mut Vec<RankStatistics>, others: Vec<RankStatistics>) {
    if statistics.is_empty() {
        *statistics = others;
        return;
    }
    for (own, other) in statistics.iter_mut().zip(others) {
        own.documents += other.documents;
        own.words += other.words;
        own.hits.resize(own.hits.len().max(other.hits.len()), 0.0);
        for (own, other) in own.hits.iter_mut().zip(other.hits) {
            *own += other;
        }
    }
}

/// The scores of the machine's current row.
pub(crate) fn scores(
    machine: &Machine<'_>,
    components: &[RankComponent],
    statistics: &[RankStatistics],
) -> Result<Vec<Option<f64>>, EvaluateError> {
    let mut scores = Vec::with_capacity(components.len());
    for (index, component) in components.iter().enumerate() {
        let value = match &component.score {
            Score::Vector(score) => machine.evaluate(score)?,
            Score::FullText { text, terms, language } => {
                let own = statistics.get(index).cloned().unwrap_or_default();
                let terms = terms.iter().map(|term| machine.evaluate(term)).collect::<Result<_, _>>()?;
                let hits = own.hits.iter().map(|hits| Value::Number(*hits)).collect();
                let arguments = [
                    machine.evaluate(text)?,
                    Value::Array(terms),
                    Value::Number(own.documents as f64),
                    Value::Number(own.words),
                    Value::Array(hits),
                ];
                let context = Context { full_text_language: *language, ..machine.context };
                (function("_FULLTEXTSCORE")?.evaluate)(&context, &arguments)
            }
        };
        scores.push(if let Value::Number(score) = value { Some(score) } else { None });
    }
    Ok(scores)
}

/// Rows in order of their fused rank, best first.
pub(crate) fn order(components: &[RankComponent], mut rows: Vec<ScoredRow>) -> Vec<ScoredRow> {
    let mut fused = vec![0.0; rows.len()];
    for (index, component) in components.iter().enumerate() {
        let reversed = component.weight < 0.0;
        let score = |row: &ScoredRow| match (row.scores[index], reversed) {
            (None, _) => f64::NEG_INFINITY,
            (Some(score), false) => score,
            (Some(score), true) => -score,
        };
        let mut by_score: Vec<usize> = (0..rows.len()).collect();
        by_score.sort_by(|left, right| score(&rows[*right]).total_cmp(&score(&rows[*left])));
        let (mut rank, mut last) = (0, f64::NAN);
        for row in by_score {
            if score(&rows[row]).total_cmp(&last).is_ne() {
                rank += 1;
                last = score(&rows[row]);
            }
            fused[row] += component.weight.abs() / (RANK_CONSTANT + f64::from(rank));
        }
    }
    let mut order: Vec<usize> = (0..rows.len()).collect();
    order.sort_by(|left, right| {
        fused[*right].total_cmp(&fused[*left]).then(rows[*left].place.cmp(&rows[*right].place))
    });
    let mut taken: Vec<Option<ScoredRow>> = rows.drain(..).map(Some).collect();
    order.into_iter().filter_map(|index| taken[index].take()).collect()
}
