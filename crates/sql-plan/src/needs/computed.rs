//! Computed properties as the plans of queries have them: expressions, whose names are found again by comparing.

use crate::expression::{Expr, Slot};
use crate::plan::{Projection, SourceKind};
use crate::{Catalog, Parameters, plan};
use astrarium_catalog::definition::container::ContainerDefinition;
use std::sync::Arc;

/// A computed property, for translating expressions back into its name.
#[derive(Debug, Clone)]
pub struct Computed {
    name: Arc<str>,
    expression: Expr,
    documents: Slot,
}

impl Computed {
    /// The computed properties of a container; those that are plain paths are left out, since they are found as paths.
    pub fn of(container: &ContainerDefinition) -> Vec<Computed> {
        let properties = container.computed_properties.iter();
        properties.filter_map(|property| Computed::read(&property.name, &property.query)).collect()
    }

    /// The name, which is the path of what an index holds of it.
    pub fn name(&self) -> &Arc<str> {
        &self.name
    }

    fn read(name: &str, query: &str) -> Option<Computed> {
        let query = astrarium_sql_syntax::parse(query).ok()?;
        // Without the container: computed properties may not use each other.
        let plan = plan(&query, &Catalog::default(), &Parameters::default()).ok()?;
        let [source] = &plan.sources[..] else { return None };
        let Projection::Value(expression) = plan.projection else { return None };
        let usable = matches!(source.kind, SourceKind::Documents)
            && !matches!(expression, Expr::Path(..) | Expr::Constant(_));
        usable.then(|| Computed { name: name.into(), expression, documents: source.slot })
    }

    pub(super) fn is(&self, expression: &Expr, documents: Slot) -> bool {
        self.documents == documents && self.expression == *expression
    }
}
