//! ORDER BY and ORDER BY RANK.

use super::grouping::{Grouped, LOOKED_THROUGH_MAX};
use super::{Binder, NO_ORDER};
use crate::error::PlanError;
use crate::expression::{Expr, Step};
use crate::plan::{Order, OrderKey, RankComponent, Score};
use astrarium_sql_functions::vector::VectorMetric;
use astrarium_sql_syntax::ast::{self, ExpressionKind, OrderBy, OrderItem, SelectQuery, SortDirection};
use astrarium_sql_syntax::print_expression;
use astrarium_value::Value;
use std::collections::BTreeSet;

/// Functions by which rows may be ordered although they are no paths.
const SCORES: [&str; 3] = ["VECTORDISTANCE", "_VECTORSCORE", "_FULLTEXTSCORE"];

/// What the weights of RRF have to be, in the service's words.
const WEIGHTS: &str = "The last argument of the RRF function is an optional array of weights. When present, it must be a \
    literal array of numbers, one for each of the component scores used for the RRF function. The length of this array must \
    be the same as the number of the component scores.";

impl Binder<'_> {
    /// The order of a query without grouping.
    pub(super) fn order(&mut self, query: &SelectQuery) -> Result<Order, PlanError> {
        match &query.order_by {
            None => Ok(NO_ORDER),
            Some(OrderBy::Rank { score, .. }) => self.rank(score),
            Some(OrderBy::Items { items, .. }) => {
                let mut keys: Vec<OrderKey> = Vec::with_capacity(items.len());
                let mut texts = BTreeSet::new();
                for item in items {
                    let key = self.order_key(query, item)?;
                    // Comparing each with all others takes too long for very many; then equal texts have to do.
                    let is_known = if items.len() > LOOKED_THROUGH_MAX {
                        !texts.insert(print_expression(&item.expression))
                    } else {
                        keys.iter().any(|own| own.key == key.key)
                    };
                    if is_known {
                        let message = "The same path may not be ordered by twice.";
                        return Err(PlanError::new(item.expression.span, "SC2207", message));
                    }
                    keys.push(key);
                }
                Ok(Order::Keys(keys))
            }
        }
    }

    /// The order of groups; one group of everything has none.
    pub(super) fn grouped_order(
        &mut self,
        query: &SelectQuery,
        grouped: &mut Grouped,
    ) -> Result<Order, PlanError> {
        let Some(OrderBy::Items { items, .. }) = &query.order_by else { return Ok(NO_ORDER) };
        if query.group_by.is_empty() {
            return Ok(NO_ORDER);
        }
        let keys = items.iter().map(|item| {
            let key = self.grouped_expression(&item.expression, grouped)?;
            Ok(OrderKey { key, descending: is_descending(item) })
        });
        Ok(Order::Keys(keys.collect::<Result<_, PlanError>>()?))
    }

    fn order_key(&mut self, query: &SelectQuery, item: &OrderItem) -> Result<OrderKey, PlanError> {
        let score = match &item.expression.kind {
            ExpressionKind::Call { name, .. } => SCORES.iter().find(|score| score.eq_ignore_ascii_case(name)),
            _ => None,
        };
        let key = self.expression(&item.expression)?;
        match (score, &key) {
            (Some(&"VECTORDISTANCE"), Expr::Call(_, arguments, settings)) => {
                if item.direction.is_some() {
                    let message = "Specifying a sorting order (ASC or DESC) with VectorDistance function is not supported.";
                    return Err(PlanError::new(item.expression.span, "SC2221", message));
                }
                let distance =
                    explicit_distance(arguments).or(settings.vector.map(|vector| vector.distance_function));
                let descending = distance.unwrap_or_default() != VectorMetric::Euclidean;
                Ok(OrderKey { key, descending })
            }
            // A score is best when greatest, unless the text says otherwise.
            (Some(_), _) => {
                Ok(OrderKey { descending: item.direction != Some(SortDirection::Ascending), key })
            }
            (None, _)
                if self.is_document_path(&key)
                    || self.is_sub_root(query, &key)
                    || self.is_computed(&item.expression) =>
            {
                Ok(OrderKey { key, descending: is_descending(item) })
            }
            (None, _) => {
                let message = "Unsupported ORDER BY clause. ORDER BY item expression could not be mapped to a document path.";
                Err(PlanError::new(item.expression.span, "2206", message))
            }
        }
    }

    /// A path that begins at the document, by names and positions only.
    fn is_document_path(&self, key: &Expr) -> bool {
        matches!(key, Expr::Path(slot, steps) if !steps.is_empty()
            && (Some(*slot) == self.root || self.scopes.iter().flatten().any(|(_, own)| own == slot))
            && steps.iter().all(|step| matches!(step, Step::Name(_) | Step::Position(_))))
    }

    /// The alias of `FROM c.path alias`, which stands for that path of the document.
    fn is_sub_root(&self, query: &SelectQuery, key: &Expr) -> bool {
        let first = query.from.as_ref().map(|from| &from.first.kind);
        let Some(ast::FromSourceKind::Path { path, .. }) = first else { return false };
        let slot = self.scopes.last().and_then(|names| names.first()).map(|(_, slot)| *slot);
        !matches!(path.kind, ExpressionKind::Identifier(_))
            && matches!(key, Expr::Path(own, steps) if steps.is_empty() && Some(*own) == slot)
    }

    /// `alias.name` of a computed property.
    fn is_computed(&self, expression: &ast::Expression) -> bool {
        let ExpressionKind::Member { base, name, .. } = &expression.kind else { return false };
        let ExpressionKind::Identifier(alias) = &base.kind else { return false };
        self.lookup(alias).is_some_and(|slot| Some(slot) == self.root)
            && self.catalog.container.is_some_and(|container| {
                container.computed_properties.iter().any(|property| property.name == *name)
            })
    }

    fn rank(&mut self, score: &ast::Expression) -> Result<Order, PlanError> {
        let wrong = |span| {
            let message =
                "ORDER BY RANK takes one scoring function: FullTextScore, VectorDistance or RRF of those.";
            PlanError::new(span, "SC2223", message)
        };
        let ExpressionKind::Call { name, arguments, user_defined: false } = &score.kind else {
            return Err(wrong(score.span));
        };
        if !name.eq_ignore_ascii_case("RRF") {
            return Ok(Order::Rank(vec![RankComponent { score: self.score(score)?, weight: 1.0 }]));
        }
        let (scores, weights) = match arguments.split_last() {
            Some((last, scores)) if !matches!(last.kind, ExpressionKind::Call { .. }) => {
                (scores, Some(self.weights(last)?))
            }
            _ => (&arguments[..], None),
        };
        if scores.len() < 2 && weights.is_none() || scores.is_empty() {
            return Err(wrong(score.span));
        }
        if weights.as_ref().is_some_and(|weights| weights.len() != scores.len()) {
            return Err(PlanError::new(score.span, "SC2229", WEIGHTS));
        }
        let mut components = Vec::with_capacity(scores.len());
        for (index, one) in scores.iter().enumerate() {
            let weight = weights.as_ref().map_or(1.0, |weights| weights[index]);
            components.push(RankComponent { score: self.score(one)?, weight });
        }
        Ok(Order::Rank(components))
    }

    fn weights(&mut self, list: &ast::Expression) -> Result<Vec<f64>, PlanError> {
        let wrong = || PlanError::new(list.span, "SC2229", WEIGHTS);
        let bound = self.expression(list)?;
        let numbers: Vec<Value> = match bound {
            Expr::Array(items) => items
                .into_iter()
                .map(|item| item.as_constant().cloned())
                .collect::<Option<_>>()
                .ok_or_else(wrong)?,
            Expr::Constant(Value::Array(items)) => items,
            _ => return Err(wrong()),
        };
        numbers
            .iter()
            .map(|number| if let Value::Number(number) = number { Ok(*number) } else { Err(wrong()) })
            .collect()
    }

    fn score(&mut self, score: &ast::Expression) -> Result<Score, PlanError> {
        let wrong =
            || PlanError::new(score.span, "SC2224", "Only FullTextScore and VectorDistance can be ranked.");
        let ExpressionKind::Call { name, arguments, user_defined: false } = &score.kind else {
            return Err(wrong());
        };
        if name.eq_ignore_ascii_case("VECTORDISTANCE") {
            let Expr::Call(_, arguments, settings) = self.expression(score)? else { return Err(wrong()) };
            let function = astrarium_sql_functions::find("_VECTORSCORE").ok_or_else(wrong)?;
            return Ok(Score::Vector(Expr::Call(function, arguments, settings)));
        }
        if !name.eq_ignore_ascii_case("FULLTEXTSCORE") || arguments.len() < 2 {
            return Err(wrong());
        }
        let text = self.expression(&arguments[0])?;
        let language = self.language_of(&text);
        let mut terms = Vec::new();
        for argument in &arguments[1..] {
            match self.expression(argument)? {
                // The older form: one array of terms.
                Expr::Array(items) => terms.extend(items),
                Expr::Constant(Value::Array(items)) => terms.extend(items.into_iter().map(Expr::Constant)),
                term => terms.push(term),
            }
        }
        Ok(Score::FullText { text, terms, language })
    }
}

fn is_descending(item: &OrderItem) -> bool {
    item.direction == Some(SortDirection::Descending)
}

/// The distance function that a call of VectorDistance names itself.
fn explicit_distance(arguments: &[Expr]) -> Option<VectorMetric> {
    let name = match arguments.get(3)? {
        Expr::Object(members) => {
            let (_, value) = members.iter().find(|(name, _)| &**name == "distanceFunction")?;
            value.as_constant()?.clone()
        }
        Expr::Constant(Value::Object(object)) => object.get("distanceFunction")?.clone(),
        _ => return None,
    };
    let Value::String(name) = name else { return None };
    VectorMetric::from_name(&name)
}
