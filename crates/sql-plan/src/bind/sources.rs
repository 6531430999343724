//! FROM and JOIN: which slot each alias is, and what fills it.

use super::{Binder, bind, unresolved};
use crate::error::PlanError;
use crate::expression::{Expr, Slot, Step};
use crate::plan::{PlanSource, SourceKind};
use astrarium_sql_syntax::Span;
use astrarium_sql_syntax::ast::{self, Collection, ExpressionKind, FromClause};

impl Binder<'_> {
    pub(super) fn sources(&mut self, from: Option<&FromClause>) -> Result<Vec<PlanSource>, PlanError> {
        let Some(from) = from else { return Ok(Vec::new()) };
        let mut sources = Vec::new();
        self.source(&from.first, true, &mut sources)?;
        for join in &from.joins {
            self.source(join, false, &mut sources)?;
        }
        Ok(sources)
    }

    fn source(
        &mut self,
        source: &ast::FromSource,
        first: bool,
        sources: &mut Vec<PlanSource>,
    ) -> Result<(), PlanError> {
        match &source.kind {
            ast::FromSourceKind::Path { path, alias } => {
                let name = alias.as_ref().map(|alias| alias.text.clone()).or_else(|| last_name(path));
                let base = self.source_path(path, first, sources)?;
                match base {
                    // The container itself, or an outer row as it is: its slot gets the name.
                    Expr::Path(slot, steps) if steps.is_empty() && first => {
                        self.name(name, slot, source.span)
                    }
                    value => {
                        let slot = self.new_slot();
                        sources.push(PlanSource { slot, kind: SourceKind::Value(value) });
                        self.name(name, slot, source.span)
                    }
                }
            }
            ast::FromSourceKind::Iterate { alias, collection } => {
                let kind = match collection {
                    Collection::Path(path) => SourceKind::Elements(self.source_path(path, first, sources)?),
                    Collection::Subquery(query) => match self.whole_input(query, first, sources)? {
                        Some(row) => SourceKind::Elements(Expr::Path(row, Vec::new())),
                        None => SourceKind::ElementsOfRows(Box::new(self.query(query)?)),
                    },
                };
                let slot = self.new_slot();
                sources.push(PlanSource { slot, kind });
                self.name(Some(alias.text.clone()), slot, alias.span)
            }
            ast::FromSourceKind::Subquery { query, alias } => {
                if let Some(row) = self.whole_input(query, first, sources)? {
                    return self.name(alias.as_ref().map(|alias| alias.text.clone()), row, source.span);
                }
                let plan = self.query(query)?;
                let slot = self.new_slot();
                sources.push(PlanSource { slot, kind: SourceKind::Rows(Box::new(plan)) });
                self.name(alias.as_ref().map(|alias| alias.text.clone()), slot, source.span)
            }
        }
    }

    /// Gets ready for a subquery as the first source of a whole query, which reads the container itself. Where it merges
    /// documents, its rows stand where documents would: their slot. Otherwise each document has its own rows, as in a
    /// join, so that pages and ranges come one after another.
    fn whole_input(
        &mut self,
        query: &ast::SelectQuery,
        first: bool,
        sources: &mut Vec<PlanSource>,
    ) -> Result<Option<Slot>, PlanError> {
        if !first || self.scopes.len() > 1 {
            return Ok(None);
        }
        if is_row_by_row(query) {
            self.documents(sources);
            self.root_unnamed = true;
            return Ok(None);
        }
        self.input = Some(bind(query, &self.catalog, self.parameters)?);
        Ok(Some(self.documents(sources)))
    }

    /// Gives a source its name; one without a name is only seen by `SELECT *`.
    fn name(&mut self, name: Option<String>, slot: Slot, span: Span) -> Result<(), PlanError> {
        let name = name.unwrap_or_default();
        let names = self.scopes.last_mut().expect("a query has a scope");
        if !name.is_empty() && names.iter().any(|(own, _)| *own == name) {
            let message = format!("The input alias '{name}' is specified more than once in the FROM clause.");
            return Err(PlanError::new(span, "SC2011", message));
        }
        names.push((name, slot));
        Ok(())
    }

    /// The container's documents as the first source of a whole query.
    fn documents(&mut self, sources: &mut Vec<PlanSource>) -> Slot {
        let slot = self.new_slot();
        self.root = Some(slot);
        sources.push(PlanSource { slot, kind: SourceKind::Documents });
        slot
    }

    /// A path of a source. The base of the first one is any name for the container, unless an outer query has the name.
    fn source_path(
        &mut self,
        path: &ast::Expression,
        first: bool,
        sources: &mut Vec<PlanSource>,
    ) -> Result<Expr, PlanError> {
        match &path.kind {
            ExpressionKind::Identifier(name) => {
                if let Some(slot) = self.lookup(name) {
                    return Ok(Expr::Path(slot, Vec::new()));
                }
                match self.root {
                    None if first => Ok(Expr::Path(self.documents(sources), Vec::new())),
                    Some(root) if first && self.root_unnamed => {
                        self.root_unnamed = false;
                        Ok(Expr::Path(root, Vec::new()))
                    }
                    // `root` always means the document, also inside a subquery.
                    Some(root) if name.eq_ignore_ascii_case("root") => Ok(Expr::Path(root, Vec::new())),
                    _ => Err(unresolved(name, path.span)),
                }
            }
            ExpressionKind::Member { base, name, .. } => {
                let base = self.source_path(base, first, sources)?;
                Ok(step_into(base, Step::Name(name.as_str().into())))
            }
            ExpressionKind::Index { base, index } => {
                let base = self.source_path(base, first, sources)?;
                let index = self.expression(index)?;
                Ok(super::expressions::index_into(base, index))
            }
            _ => Err(PlanError::new(path.span, "SC2010", "A source of rows must be a path.")),
        }
    }

    /// The slot of a name, from the innermost query outwards.
    pub(super) fn lookup(&self, name: &str) -> Option<Slot> {
        let scopes = self.scopes.iter().rev();
        scopes.flat_map(|names| names.iter()).find(|(own, _)| own == name).map(|(_, slot)| *slot)
    }
}

/// Whether a subquery's rows are made of one document each: it reads the container and merges nothing.
fn is_row_by_row(query: &ast::SelectQuery) -> bool {
    let from = match query.from.as_ref().map(|from| &from.first.kind) {
        None => false,
        Some(
            ast::FromSourceKind::Subquery { query, .. }
            | ast::FromSourceKind::Iterate { collection: Collection::Subquery(query), .. },
        ) => is_row_by_row(query),
        Some(_) => true,
    };
    from && !query.select.distinct && query.group_by.is_empty() && !super::grouping::has_aggregate(query)
}

/// One more step into a value.
pub(super) fn step_into(base: Expr, step: Step) -> Expr {
    match base {
        Expr::Path(slot, mut steps) => {
            steps.push(step);
            Expr::Path(slot, steps)
        }
        other => Expr::Access(Box::new(other), step),
    }
}

fn last_name(path: &ast::Expression) -> Option<String> {
    match &path.kind {
        ExpressionKind::Identifier(name) | ExpressionKind::Member { name, .. } => Some(name.clone()),
        _ => None,
    }
}
