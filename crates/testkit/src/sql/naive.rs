//! The query language the slow and obvious way: walks the syntax tree over plain values, one clause after the other.
//!
//! In: a tree from `sql-syntax`, documents, parameters. Out: all rows, in the order of the documents where the query
//! asks for no other. Written from the description of the language and not from the engine, so that an agreement of the
//! two says something; it plans nothing, shares no evaluation code, and copies rows as it likes.
//! Invariants
//! - Only what random queries use is here: what it does not know is an error that names it, never a wrong answer.
//!
//! Not here: paging, scoping, system properties, computed properties, user-defined functions, ORDER BY RANK.

pub mod data;
mod evaluate;
pub mod functions;

use astrarium_sql_syntax::ast::{
    Collection, Count, Expression, ExpressionKind, FromSource, FromSourceKind, OrderBy, SelectForm,
    SelectQuery, SortDirection,
};
use astrarium_sql_syntax::visit::TreePart;
use data::{Data, equal, total_order};
use std::cmp::Ordering;

/// Why a query has no naive answer.
pub type Unknown = String;

/// Names of sources and what they stand for, the innermost last.
type Names = Vec<(String, Data)>;

/// What every part of a query sees.
struct Context<'a> {
    documents: &'a [Data],
    parameters: &'a [(String, Data)],
}

/// One row: the names of its sources, and all rows of its group if there is grouping.
struct Row {
    names: Names,
    group: Option<Vec<Names>>,
}

/// All rows of a query.
pub fn rows(
    query: &SelectQuery,
    documents: &[Data],
    parameters: &[(String, Data)],
) -> Result<Vec<Data>, Unknown> {
    Context { documents, parameters }.query(query, &Names::new())
}

impl Context<'_> {
    fn query(&self, query: &SelectQuery, outer: &Names) -> Result<Vec<Data>, Unknown> {
        let mut rows = self.sources(query, outer)?;
        if let Some(filter) = &query.filter {
            let mut kept = Vec::new();
            for row in rows {
                if matches!(self.value(filter, &row, None)?, Data::Bool(true)) {
                    kept.push(row);
                }
            }
            rows = kept;
        }
        let mut rows = self.grouped(query, rows, outer)?;
        self.sort(query, &mut rows)?;
        let mut values = Vec::new();
        for row in &rows {
            values.push(self.projected(query, row)?);
        }
        values.retain(|value| !matches!(value, Data::Undefined));
        if query.select.distinct {
            let mut seen: Vec<Data> = Vec::new();
            for value in values {
                if !seen.iter().any(|own| equal(own, &value)) {
                    seen.push(value);
                }
            }
            values = seen;
        }
        self.limited(query, values)
    }

    /// One list of names for each combination of the sources' values.
    fn sources(&self, query: &SelectQuery, outer: &Names) -> Result<Vec<Names>, Unknown> {
        let Some(from) = &query.from else { return Ok(vec![outer.clone()]) };
        let mut rows = vec![outer.clone()];
        for (index, source) in std::iter::once(&from.first).chain(&from.joins).enumerate() {
            let mut longer = Vec::new();
            for row in rows {
                for (name, value) in self.source(source, index == 0, &row)? {
                    let mut names = row.clone();
                    names.push((name, value));
                    longer.push(names);
                }
            }
            rows = longer;
        }
        Ok(rows)
    }

    fn source(&self, source: &FromSource, first: bool, row: &Names) -> Result<Vec<(String, Data)>, Unknown> {
        let named = |name: &str, values: Vec<Data>| {
            values.into_iter().map(|value| (name.to_owned(), value)).collect()
        };
        match &source.kind {
            FromSourceKind::Path { path, alias } => {
                let name = alias.as_ref().map_or_else(|| last_name(path), |alias| Some(alias.text.clone()));
                let mut values = self.source_path(path, first, row)?;
                values.retain(|value| !matches!(value, Data::Undefined));
                Ok(named(&name.unwrap_or_default(), values))
            }
            FromSourceKind::Iterate { alias, collection } => {
                let arrays = match collection {
                    Collection::Path(path) => self.source_path(path, first, row)?,
                    Collection::Subquery(query) => self.query(query, row)?,
                };
                let items = arrays
                    .into_iter()
                    .flat_map(|array| if let Data::Array(items) = array { items } else { Vec::new() });
                Ok(named(&alias.text, items.collect()))
            }
            FromSourceKind::Subquery { query, alias } => {
                let alias = alias.as_ref().map(|alias| alias.text.clone()).unwrap_or_default();
                Ok(named(&alias, self.query(query, row)?))
            }
        }
    }

    /// The values of a source's path: one for each document if it begins at the container.
    fn source_path(&self, path: &Expression, first: bool, row: &Names) -> Result<Vec<Data>, Unknown> {
        match &path.kind {
            ExpressionKind::Identifier(name) => match lookup(row, name) {
                Some(value) => Ok(vec![value.clone()]),
                None if first && row.is_empty() => Ok(self.documents.to_vec()),
                None => Err(format!("the source {name}")),
            },
            ExpressionKind::Member { base, name, .. } => {
                let bases = self.source_path(base, first, row)?;
                Ok(bases.iter().map(|base| base.member(name)).collect())
            }
            ExpressionKind::Index { base, index } => {
                let index = self.value(index, row, None)?;
                let bases = self.source_path(base, first, row)?;
                Ok(bases.iter().map(|base| base.index(&index)).collect())
            }
            other => Err(format!("the source {other:?}")),
        }
    }

    /// Rows as groups, if the query aggregates; each row alone otherwise.
    fn grouped(&self, query: &SelectQuery, rows: Vec<Names>, outer: &Names) -> Result<Vec<Row>, Unknown> {
        if query.group_by.is_empty() && !has_aggregate(query) {
            return Ok(rows.into_iter().map(|names| Row { names, group: None }).collect());
        }
        let mut groups: Vec<(Vec<Data>, Vec<Names>)> = Vec::new();
        if query.group_by.is_empty() {
            groups.push((Vec::new(), Vec::new()));
        }
        for row in rows {
            let keys = query
                .group_by
                .iter()
                .map(|key| self.value(key, &row, None))
                .collect::<Result<Vec<_>, _>>()?;
            let same = |own: &[Data]| own.iter().zip(&keys).all(|(own, key)| same_key(own, key));
            match groups.iter_mut().find(|(own, _)| same(own)) {
                Some((_, members)) => members.push(row),
                None => groups.push((keys, vec![row])),
            }
        }
        let row = |(_, group): (Vec<Data>, Vec<Names>)| Row {
            names: group.first().unwrap_or(outer).clone(),
            group: Some(group),
        };
        Ok(groups.into_iter().map(row).collect())
    }

    fn sort(&self, query: &SelectQuery, rows: &mut Vec<Row>) -> Result<(), Unknown> {
        let items = match &query.order_by {
            None => return Ok(()),
            // Also the one row of an aggregate, which may be about no row at all.
            Some(_) if rows.len() < 2 => return Ok(()),
            Some(OrderBy::Items { items, .. }) => items,
            Some(OrderBy::Rank { .. }) => return Err("ORDER BY RANK".to_owned()),
        };
        let mut keyed = Vec::new();
        for row in std::mem::take(rows) {
            let keys =
                items.iter().map(|item| self.value(&item.expression, &row.names, row.group.as_deref()));
            keyed.push((keys.collect::<Result<Vec<_>, _>>()?, row));
        }
        // Documents of equal keys come in the direction of the first key, as an index that is walked has them; the rows of
        // one document stay as they are. DISTINCT keeps the first document of a value in both directions.
        if !query.select.distinct
            && items.first().is_some_and(|item| item.direction == Some(SortDirection::Descending))
        {
            let document = |row: &Row| row.names.first().map_or(Data::Undefined, |(_, value)| value.clone());
            let mut groups: Vec<Vec<(Vec<Data>, Row)>> = Vec::new();
            for (keys, row) in keyed {
                match groups.last_mut() {
                    Some(group) if equal(&document(&group[0].1), &document(&row)) => group.push((keys, row)),
                    _ => groups.push(vec![(keys, row)]),
                }
            }
            keyed = groups.into_iter().rev().flatten().collect();
        }
        keyed.sort_by(|(left, _), (right, _)| {
            let compared = items.iter().zip(left.iter().zip(right)).map(|(item, (left, right))| {
                let order = total_order(left, right);
                if item.direction == Some(SortDirection::Descending) { order.reverse() } else { order }
            });
            compared.fold(Ordering::Equal, Ordering::then)
        });
        *rows = keyed.into_iter().map(|(_, row)| row).collect();
        Ok(())
    }

    fn projected(&self, query: &SelectQuery, row: &Row) -> Result<Data, Unknown> {
        let value = |expression: &Expression| self.value(expression, &row.names, row.group.as_deref());
        match &query.select.projection {
            SelectForm::Star => Ok(row.names.last().map_or(Data::Undefined, |(_, value)| value.clone())),
            SelectForm::Value(expression) => value(expression),
            SelectForm::List(items) => {
                let mut members = Vec::new();
                for (index, item) in items.iter().enumerate() {
                    let alias = item.alias.as_ref().map(|alias| alias.text.clone());
                    let name = alias.or_else(|| last_name(&item.expression));
                    members.push((
                        name.ok_or_else(|| format!("an unnamed member {index}"))?,
                        value(&item.expression)?,
                    ));
                }
                Ok(Data::object(members))
            }
        }
    }

    fn limited(&self, query: &SelectQuery, values: Vec<Data>) -> Result<Vec<Data>, Unknown> {
        let (skip, take) = match (&query.offset_limit, &query.select.top) {
            (Some(clause), _) => (self.count(&clause.offset)?, self.count(&clause.limit)?),
            (None, Some(top)) => (0, self.count(top)?),
            (None, None) => (0, usize::MAX),
        };
        Ok(values.into_iter().skip(skip).take(take).collect())
    }

    fn count(&self, count: &Count) -> Result<usize, Unknown> {
        match count {
            Count::Literal { value, .. } => Ok(*value as usize),
            Count::Parameter { name, .. } => match self.parameter(name)? {
                Data::Number(number) => Ok(number as usize),
                other => Err(format!("a count {other:?}")),
            },
        }
    }

    fn parameter(&self, name: &str) -> Result<Data, Unknown> {
        let found = self.parameters.iter().find(|(own, _)| own == name);
        found.map(|(_, value)| value.clone()).ok_or_else(|| format!("the parameter {name}"))
    }
}

fn lookup<'a>(names: &'a Names, name: &str) -> Option<&'a Data> {
    names.iter().rev().find(|(own, _)| own == name).map(|(_, value)| value)
}

/// Keys of one group: undefined is a key of its own.
fn same_key(left: &Data, right: &Data) -> bool {
    matches!((left, right), (Data::Undefined, Data::Undefined)) || equal(left, right)
}

fn last_name(path: &Expression) -> Option<String> {
    match &path.kind {
        ExpressionKind::Identifier(name) | ExpressionKind::Member { name, .. } => Some(name.clone()),
        _ => None,
    }
}

fn has_aggregate(query: &SelectQuery) -> bool {
    match &query.select.projection {
        SelectForm::Star => false,
        SelectForm::Value(value) => contains_aggregate(value),
        SelectForm::List(items) => items.iter().any(|item| contains_aggregate(&item.expression)),
    }
}

fn contains_aggregate(expression: &Expression) -> bool {
    if let ExpressionKind::Call { name, user_defined: false, .. } = &expression.kind
        && functions::is_aggregate(name)
    {
        return true;
    }
    let mut found = false;
    expression.parts(&mut |part| {
        if let TreePart::Expression(inner) = part {
            found |= contains_aggregate(inner);
        }
    });
    found
}
