//! What a container's policies say about the path that a function looks at.

use super::Binder;
use crate::expression::{CallSettings, Expr, Step};
use astrarium_catalog::definition::Named as _;
use astrarium_catalog::definition::container as policy;
use astrarium_sql_functions::VectorDefaults;
use astrarium_sql_functions::full_text::TextLanguage;
use astrarium_sql_functions::vector::{DataType, VectorMetric};

impl Binder<'_> {
    pub(super) fn call_settings(&self, name: &str, arguments: &[Expr]) -> CallSettings {
        let upper = name.to_ascii_uppercase();
        CallSettings {
            language: upper
                .contains("FULLTEXT")
                .then(|| arguments.first().map(|text| self.language_of(text)))
                .flatten(),
            vector: upper
                .contains("VECTOR")
                .then(|| arguments.iter().find_map(|one| self.vector_of(one)))
                .flatten(),
        }
    }

    /// The language of a full-text path: its own, the container's default, or English.
    pub(super) fn language_of(&self, text: &Expr) -> TextLanguage {
        let policy = self.catalog.container.and_then(|container| container.full_text.as_ref());
        let Some(policy) = policy else { return TextLanguage::default() };
        let found = policy.paths.iter().find(|path| self.is_path(text, path.path.segments()));
        let own = found.and_then(|path| path.language.as_ref()).unwrap_or(&policy.default_language);
        TextLanguage::from_name(own.value.name()).unwrap_or_default()
    }

    fn vector_of(&self, vector: &Expr) -> Option<VectorDefaults> {
        let embeddings = &self.catalog.container?.vector_embeddings;
        let embedding = embeddings.iter().find(|one| self.is_path(vector, one.path.segments()))?;
        Some(VectorDefaults {
            distance_function: match embedding.distance {
                policy::DistanceFunction::Cosine => VectorMetric::Cosine,
                policy::DistanceFunction::DotProduct => VectorMetric::DotProduct,
                policy::DistanceFunction::Euclidean => VectorMetric::Euclidean,
            },
            data_type: DataType::default(),
        })
    }

    /// Whether an expression is this path of the document.
    fn is_path(&self, expression: &Expr, segments: &[Box<str>]) -> bool {
        let Expr::Path(slot, steps) = expression else { return false };
        Some(*slot) == self.root
            && steps.len() == segments.len()
            && steps
                .iter()
                .zip(segments)
                .all(|(step, segment)| matches!(step, Step::Name(name) if **name == **segment))
    }
}
