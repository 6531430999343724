//! What properties the documents of a container have, from a sample: for completion only.
//!
//! Invariants: the sample, the tree and the time for it are bounded; a schema is asked for again after a while.

use astrarium_client::{ContainerClient, QueryRequest};
use astrarium_env::Instant;
use astrarium_value::json::{Kind, Node, Text};
use std::collections::BTreeMap;
use std::time::Duration;

/// Documents that are looked at.
const SAMPLE: u32 = 50;
/// Names that are remembered of a container.
const NAMES_MAX: usize = 1_000;
/// Levels that are looked at.
const DEPTH_MAX: usize = 8;
/// Elements of an array that are looked at.
const ELEMENTS_MAX: usize = 10;
/// How long a schema counts.
const AGE_MAX: Duration = Duration::from_mins(1);
/// Containers whose schemas are remembered.
const CONTAINERS_MAX: usize = 20;

/// The names below a place in documents. Elements of arrays count as the array itself.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct SchemaTree {
    members: BTreeMap<String, SchemaTree>,
}

impl SchemaTree {
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.members.keys().map(String::as_str)
    }

    /// The place that a path leads to.
    pub(crate) fn at<'a>(&self, path: impl IntoIterator<Item = &'a str>) -> Option<&SchemaTree> {
        path.into_iter().try_fold(self, |tree, name| tree.members.get(name))
    }

    fn add(&mut self, node: Node<'_>, depth: usize, count: &mut usize) {
        if depth == DEPTH_MAX {
            return;
        }
        match node.kind() {
            Kind::Object => {
                for (name, value) in node.members() {
                    if !self.members.contains_key(&*name) {
                        *count += 1;
                        if *count > NAMES_MAX || name.len() > 200 {
                            continue;
                        }
                    }
                    self.members.entry(name.into_owned()).or_default().add(value, depth + 1, count);
                }
            }
            Kind::Array => {
                for element in node.elements().take(ELEMENTS_MAX) {
                    self.add(element, depth + 1, count);
                }
            }
            _ => {}
        }
    }
}

/// The schemas of containers that were asked for.
#[derive(Debug, Default)]
pub(crate) struct SampledSchemas {
    known: BTreeMap<(String, String), (Instant, SchemaTree)>,
}

impl SampledSchemas {
    /// The schema of a container; an empty one if the server cannot be asked.
    pub(crate) async fn of(&mut self, container: &ContainerClient) -> SchemaTree {
        let id = (container.database().to_owned(), container.name().to_owned());
        if let Some((taken, tree)) = self.known.get(&id)
            && taken.elapsed() < AGE_MAX
        {
            return tree.clone();
        }
        let tree = sample(container).await;
        if self.known.len() >= CONTAINERS_MAX {
            self.known.clear();
        }
        self.known.insert(id, (Instant::now(), tree.clone()));
        tree
    }
}

async fn sample(container: &ContainerClient) -> SchemaTree {
    let mut query = QueryRequest::new("SELECT * FROM c");
    query.page_size = Some(SAMPLE);
    let page = container.query(query).next_page().await;
    let mut tree = SchemaTree::default();
    let mut count = 0;
    for item in page.ok().flatten().map(|page| page.items).unwrap_or_default() {
        if let Ok(text) = Text::parse(&item) {
            tree.add(text.root(), 0, &mut count);
        }
    }
    tree
}

#[cfg(test)]
pub(crate) fn schema_of(documents: &[&str]) -> SchemaTree {
    let mut tree = SchemaTree::default();
    for document in documents {
        tree.add(Text::parse(document.as_bytes()).unwrap().root(), 0, &mut 0);
    }
    tree
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_documents() {
        let tree = schema_of(&["{\"a\":{\"b\":1},\"t\":[{\"x\":1},{\"y\":2}]}", "{\"a\":{\"c\":[]}}", "7"]);
        assert_eq!(tree.names().collect::<Vec<_>>(), ["a", "t"]);
        assert_eq!(tree.at(["a"]).unwrap().names().collect::<Vec<_>>(), ["b", "c"]);
        assert_eq!(tree.at(["t"]).unwrap().names().collect::<Vec<_>>(), ["x", "y"]);
        assert!(tree.at(["a", "z"]).is_none());
        let many = (0..5000).map(|number| format!(",\"p{number}\":1")).collect::<Vec<_>>().concat();
        assert!(schema_of(&[&format!("{{\"a\":1{many}}}")]).names().count() <= NAMES_MAX);
        let deep = format!("{}1{}", "{\"a\":".repeat(40), "}".repeat(40));
        assert!(schema_of(&[&deep]).at(["a"; DEPTH_MAX + 1]).is_none());
    }
}
