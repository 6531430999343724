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
    /// The expression and the slot of its documents; none for a plain path, which is found as a path.
    expression: Option<(Expr, Slot)>,
}

impl Computed {
    /// The computed properties that an index made by this definition holds under their names, in place of what documents
    /// have there.
    pub fn of(container: &ContainerDefinition) -> Vec<Computed> {
        let properties = container.computed_properties.iter();
        let computed = properties.map(|property| Computed {
            name: property.name.as_str().into(),
            expression: Computed::read(&property.query),
        });
        computed.collect()
    }

    /// The name, which is the path of what an index holds of it.
    pub fn name(&self) -> &Arc<str> {
        &self.name
    }

    fn read(query: &str) -> Option<(Expr, Slot)> {
        let query = astrarium_sql_syntax::parse(query).ok()?;
        // Without the container: computed properties may not use each other.
        let plan = plan(&query, &Catalog::default(), &Parameters::default()).ok()?;
        let [source] = &plan.sources[..] else { return None };
        let Projection::Value(expression) = plan.projection else { return None };
        let usable = matches!(source.kind, SourceKind::Documents)
            && !matches!(expression, Expr::Path(..) | Expr::Constant(_));
        usable.then_some((expression, source.slot))
    }

    pub(super) fn is(&self, expression: &Expr, documents: Slot) -> bool {
        matches!(&self.expression, Some((own, slot)) if *slot == documents && own == expression)
    }
}
