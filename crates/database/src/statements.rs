//! Texts of queries that were read before: applications send the same few again and again, with other parameters.
//!
//! In: a text. Out: what its grammar says, once for all who send it.
//! Invariants
//! - What is kept depends on the text alone, so it is never out of date. Its plan, which depends on a container too, is
//!   kept for that container alone (`planned`).
//! - Memory is bounded: long texts are not kept, and a full cache starts anew.

use crate::planned::PlanSlot;
use crate::scripts::functions;
use crate::{Account, Error, Query, queries};
use astrarium_env::Instant;
use astrarium_sql_syntax::ast;
use astrarium_value::Value;
use foldhash::fast::RandomState;
use hashbrown::HashMap;
use parking_lot::RwLock;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Texts that are kept at most, and the longest that are, in bytes.
const TEXT_COUNT_MAX: usize = 2_000;
const TEXT_BYTES_MAX: usize = 2_048;

/// What a query's text says.
#[derive(Debug)]
pub(crate) struct Statement {
    pub(crate) text: String,
    pub(crate) tree: ast::SelectQuery,
    /// The user-defined functions it calls.
    pub(crate) functions: Vec<String>,
    /// The plan of the query that it is without parameters.
    pub(crate) slot: Arc<PlanSlot>,
}

impl Statement {
    /// Reads a text; refuses what breaks the grammar.
    pub(crate) fn parse(text: &str) -> Result<Statement, Error> {
        let tree = astrarium_sql_syntax::parse(text).map_err(|error| queries::syntax(text, &[error]))?;
        let broken = astrarium_sql_syntax::check(&tree, text);
        if !broken.is_empty() {
            return Err(queries::syntax(text, &broken));
        }
        let functions = functions::names(&tree);
        Ok(Statement { text: text.to_owned(), tree, functions, slot: Arc::default() })
    }
}

/// Statements by their texts.
#[derive(Default)]
pub(crate) struct StatementCache {
    known: RwLock<HashMap<Box<str>, Arc<Statement>, RandomState>>,
    /// Plans that were made for queries over containers.
    plans: AtomicU64,
}

impl StatementCache {
    /// How many plans were made.
    pub(crate) fn plan_count(&self) -> u64 {
        self.plans.load(Relaxed)
    }

    /// Counts a plan.
    pub(crate) fn plan_made(&self) {
        self.plans.fetch_add(1, Relaxed);
    }

    fn of(&self, text: &str) -> Result<Arc<Statement>, Error> {
        if text.len() > TEXT_BYTES_MAX {
            return Statement::parse(text).map(Arc::new);
        }
        if let Some(statement) = self.known.read().get(text) {
            return Ok(Arc::clone(statement));
        }
        let statement = Arc::new(Statement::parse(text)?);
        let mut known = self.known.write();
        if known.len() >= TEXT_COUNT_MAX {
            known.clear();
        }
        known.insert(text.into(), Arc::clone(&statement));
        Ok(statement)
    }
}

impl Account {
    /// Reads a query, as [`Query::parse`] does, and remembers its text.
    pub fn parse_query(&self, text: &str, parameters: Vec<(String, Value)>) -> Result<Query, Error> {
        let began = Instant::now();
        let statement = self.core.shared.statements.of(text)?;
        let mut query = Query::new(statement, parameters);
        query.reading = began.elapsed();
        Ok(query)
    }
}
