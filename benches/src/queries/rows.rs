//! What is asked: each question in our SQL and in PostgreSQL's, with the values of its variants and the size of its answer.
//!
//! PostgreSQL gets the fastest form found that gives the same answer (numbers are cast from text, which takes less than
//! casting JSON), and where its GIN index cannot serve (ranges, order) or a B-tree serves better, a second form over a
//! copy of the table that has a B-tree for the very expression.

use super::documents::Documents;
use serde_json::{Value, json};

/// Values for each question, where it has any.
const VARIANT_COUNT: u64 = 32;
/// Names of the two questions that are compared with each other.
pub(crate) const POINT_READ: &str = "point read";
pub(crate) const EQUALITY: &str = "equality, 1 document";
/// The goal of growth for what does not depend on the container's size.
const FLAT: f64 = 1.3;
/// Commands that make the table with its indexes for containment out of the loaded documents.
pub(crate) const INDEX: [&str; 3] = [
    "ALTER TABLE documents ADD PRIMARY KEY (id)",
    "CREATE INDEX ON documents USING gin (doc jsonb_path_ops)",
    // Without statistics PostgreSQL expects as many groups as documents, and sorts to find them.
    "CREATE STATISTICS groups (ndistinct) ON (doc->>'kind'), (doc->>'shop'), (doc->>'category'), (doc->>'branch') \
     FROM documents",
];
/// Commands that make a copy with an index for each expression.
pub(crate) const INDEX_EXPRESSIONS: [&str; 8] = [
    "CREATE TABLE trees AS SELECT * FROM documents",
    "CREATE INDEX ON trees ((doc->>'name'))",
    "CREATE INDEX ON trees (((doc->>'level')::int))",
    "CREATE INDEX ON trees (((doc->>'score')::float8))",
    "CREATE INDEX ON trees (((doc->>'grade')::int))",
    "CREATE INDEX ON trees ((doc->>'category'))",
    "CREATE INDEX ON trees ((doc->>'branch'))",
    "CREATE INDEX ON trees ((doc->>'city'), ((doc->>'grade')::int))",
];

/// A question.
pub(crate) struct Row {
    pub(crate) name: &'static str,
    /// Whether our index can serve it.
    pub(crate) indexed: bool,
    /// Our query; none for a point read.
    pub(crate) sql: Option<&'static str>,
    pub(crate) variants: Vec<Variant>,
    pub(crate) answer: AnswerShape,
    pub(crate) goals: Goals,
    pub(crate) rivals: Vec<Rival>,
}

/// What the design wants of a question.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Goals {
    /// Latency of the first rival divided by ours, at the largest size.
    pub(crate) ratio_min: Option<f64>,
    /// Our CPU at the largest size divided by that at the smallest.
    pub(crate) growth_max: Option<f64>,
}

/// What is known about an answer beforehand.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AnswerShape {
    pub(crate) row_count: u64,
    pub(crate) ordered: bool,
    /// Whether the service refuses to order by what is not indexed: then there is nothing to measure.
    pub(crate) may_be_refused: bool,
}

/// The parameters of our query; for a point read the number of the document.
#[derive(Debug, Clone)]
pub(crate) enum Variant {
    Read(u64),
    Parameters(Vec<(&'static str, Value)>),
}

/// The question as PostgreSQL is asked.
pub(crate) struct Rival {
    /// The index that it uses.
    pub(crate) index: &'static str,
    pub(crate) sql: &'static str,
    /// The values of each variant, in the order of ours.
    pub(crate) values: Vec<Vec<String>>,
}

impl Row {
    fn new(name: &'static str, sql: &'static str, row_count: u64) -> Row {
        let answer = AnswerShape { row_count, ordered: false, may_be_refused: false };
        let variants = vec![Variant::Parameters(Vec::new())];
        let goals = Goals::default();
        Row { name, indexed: true, sql: Some(sql), variants, answer, goals, rivals: Vec::new() }
    }

    /// At least as fast as PostgreSQL's scan.
    fn not_indexed(mut self) -> Row {
        self.indexed = false;
        self.at_least(1.0)
    }

    fn at_least(mut self, ratio: f64) -> Row {
        self.goals.ratio_min = Some(ratio);
        self
    }

    fn grows_at_most(mut self, growth: f64) -> Row {
        self.goals.growth_max = Some(growth);
        self
    }

    fn ordered(mut self) -> Row {
        self.answer.ordered = true;
        self
    }

    fn may_be_refused(mut self) -> Row {
        self.answer.may_be_refused = true;
        self
    }

    /// The parameters of each variant.
    fn variants<const N: usize>(
        mut self,
        values: impl Iterator<Item = u64>,
        parameters: impl Fn(u64) -> [(&'static str, Value); N],
    ) -> Row {
        self.variants = values.map(|value| Variant::Parameters(parameters(value).into())).collect();
        self
    }

    /// PostgreSQL's form, with the same plain values as ours.
    fn rival(self, index: &'static str, sql: &'static str) -> Row {
        let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        self.rival_with(index, sql, |parameters| parameters.iter().map(|(_, value)| text(value)).collect())
    }

    /// PostgreSQL's form with values made of ours.
    fn rival_with(
        mut self,
        index: &'static str,
        sql: &'static str,
        values: impl Fn(&[(&'static str, Value)]) -> Vec<String>,
    ) -> Row {
        let values = self.variants.iter().map(|variant| match variant {
            Variant::Read(number) => vec![Documents::id(*number)],
            Variant::Parameters(parameters) => values(parameters),
        });
        let values = values.collect();
        self.rivals.push(Rival { index, sql, values });
        self
    }
}

/// All questions over documents.
pub(crate) fn rows(documents: &Documents) -> Vec<Row> {
    let mut rows = scans();
    rows.extend(lookups(documents));
    rows.extend(index_aggregates(documents));
    rows
}

/// Questions that no index serves.
fn scans() -> Vec<Row> {
    let rows = vec![
        Row::new("filter, SUM", "SELECT VALUE SUM(c.amount) FROM c WHERE c.stock < @limit", 1)
            .variants([500].into_iter(), |limit| [("@limit", json!(limit))])
            .rival(
                "none",
                "SELECT sum((doc->>'amount')::float8) AS value FROM documents WHERE (doc->>'stock')::int < $1",
            ),
        Row::new(
            "filter, COUNT and AVG",
            "SELECT COUNT(1) AS documents, AVG(c.amount) AS mean FROM c WHERE c.kind = @kind AND c.stock >= @limit",
            1,
        )
        .variants([250].into_iter(), |limit| [("@kind", json!("kind-3")), ("@limit", json!(limit))])
        .rival(
            "none",
            "SELECT count(*) AS documents, avg((doc->>'amount')::float8) AS mean FROM documents \
             WHERE doc->>'kind' = $1 AND (doc->>'stock')::int >= $2",
        ),
        Row::new(
            "GROUP BY, 10 groups",
            "SELECT c.kind, COUNT(1) AS documents, SUM(c.amount) AS total FROM c GROUP BY c.kind",
            10,
        )
        .rival(
            "none",
            "SELECT doc->>'kind' AS kind, count(*) AS documents, sum((doc->>'amount')::float8) AS total \
             FROM documents GROUP BY doc->>'kind'",
        ),
        Row::new(
            "GROUP BY, 1000 groups",
            "SELECT c.shop, COUNT(1) AS documents, SUM(c.amount) AS total FROM c GROUP BY c.shop",
            1_000,
        )
        .rival(
            "none",
            "SELECT doc->>'shop' AS shop, count(*) AS documents, sum((doc->>'amount')::float8) AS total \
             FROM documents GROUP BY doc->>'shop'",
        ),
        Row::new(
            "join over an array, filter",
            "SELECT COUNT(1) AS lines, SUM(l.price) AS total FROM c JOIN l IN c.lines WHERE l.quantity >= @least",
            1,
        )
        .variants([8].into_iter(), |least| [("@least", json!(least))])
        .rival(
            "none",
            "SELECT count(*) AS lines, sum((line->>'price')::float8) AS total FROM documents, \
             jsonb_array_elements(doc->'lines') AS line WHERE (line->>'quantity')::int >= $1",
        ),
        Row::new("ORDER BY, TOP 10", "SELECT TOP 10 * FROM c ORDER BY c.weight", 10)
            .ordered()
            .may_be_refused()
            .rival("none", "SELECT doc AS value FROM documents ORDER BY (doc->>'weight')::int LIMIT 10"),
        Row::new(
            "ORDER BY of a subquery, TOP 10",
            "SELECT TOP 10 VALUE s FROM (SELECT c.id, c.weight + 0 AS weight FROM c) s ORDER BY s.weight",
            10,
        )
        .ordered()
        .rival(
            "none",
            "SELECT doc->'id' AS id, doc->'weight' AS weight FROM documents \
             ORDER BY (doc->>'weight')::int LIMIT 10",
        ),
    ];
    rows.into_iter().map(Row::not_indexed).collect()
}

/// Questions whose answer is small whatever the container holds.
fn lookups(documents: &Documents) -> Vec<Row> {
    const CONTAINS: &str = "SELECT doc AS value FROM documents WHERE doc @> $1";
    let spread = |length: u64| {
        let step = (documents.count - length) / VARIANT_COUNT;
        (0..VARIANT_COUNT).map(move |variant| variant * step)
    };
    let mut read = Row::new(POINT_READ, "", 1);
    read.sql = None;
    read.variants = spread(1).map(Variant::Read).collect();
    vec![
        read.rival("primary key", "SELECT doc AS value FROM documents WHERE id = $1"),
        Row::new(EQUALITY, "SELECT * FROM c WHERE c.name = @name", 1)
            .grows_at_most(FLAT)
            .variants(spread(1), |name| [("@name", json!(format!("name-{name:08}")))])
            .rival_with("GIN", CONTAINS, |values| vec![json!({"name": values[0].1}).to_string()])
            .rival("B-tree", "SELECT doc AS value FROM trees WHERE doc->>'name' = $1"),
        Row::new("range, 100 documents", "SELECT * FROM c WHERE c.level >= @from AND c.level < @to", 100)
            .grows_at_most(FLAT)
            .variants(spread(100), |from| [("@from", json!(from)), ("@to", json!(from + 100))])
            .rival(
                "none",
                "SELECT doc AS value FROM documents WHERE (doc->>'level')::int >= $1 AND (doc->>'level')::int < $2",
            )
            .rival(
                "B-tree",
                "SELECT doc AS value FROM trees WHERE (doc->>'level')::int >= $1 AND (doc->>'level')::int < $2",
            ),
        Row::new("ORDER BY, TOP 10", "SELECT TOP 10 * FROM c ORDER BY c.score", 10)
            .grows_at_most(FLAT)
            .ordered()
            .rival("none", "SELECT doc AS value FROM documents ORDER BY (doc->>'score')::float8 LIMIT 10")
            .rival("B-tree", "SELECT doc AS value FROM trees ORDER BY (doc->>'score')::float8 LIMIT 10"),
        Row::new("ARRAY_CONTAINS, 10 documents", "SELECT * FROM c WHERE ARRAY_CONTAINS(c.tags, @tag)", 10)
            .variants(spread(1), |value| [("@tag", json!(format!("b{}", value / 10)))])
            .rival_with("GIN", CONTAINS, |values| vec![json!({"tags": [values[0].1]}).to_string()]),
        Row::new(
            "AND of two, 10 documents",
            "SELECT * FROM c WHERE c.city = @city AND c.grade = @grade",
            10,
        )
        .variants(spread(1), |value| {
            [("@city", json!(format!("city-{}", value / 100))), ("@grade", json!(value % 10))]
        })
        .rival_with("GIN", CONTAINS, |values| {
            vec![json!({"city": values[0].1, "grade": values[1].1}).to_string()]
        })
        .rival(
            "B-tree",
            "SELECT doc AS value FROM trees WHERE doc->>'city' = $1 AND (doc->>'grade')::int = $2",
        ),
    ]
}

/// Questions that an index can answer alone, by counting.
fn index_aggregates(documents: &Documents) -> Vec<Row> {
    let grades = documents.count.min(10);
    vec![
        Row::new("COUNT, filter n/10", "SELECT VALUE COUNT(1) FROM c WHERE c.grade = @grade", 1)
            .at_least(3.0)
            .variants(0..grades, |grade| [("@grade", json!(grade))])
            .rival_with("GIN", "SELECT count(*) AS value FROM documents WHERE doc @> $1", |values| {
                vec![json!({"grade": values[0].1}).to_string()]
            })
            .rival("B-tree", "SELECT count(*) AS value FROM trees WHERE (doc->>'grade')::int = $1"),
        Row::new(
            "GROUP BY, 10 groups",
            "SELECT c.category, COUNT(1) AS documents FROM c GROUP BY c.category",
            10,
        )
        .at_least(1.2)
        .rival(
            "none",
            "SELECT doc->>'category' AS category, count(*) AS documents FROM documents GROUP BY doc->>'category'",
        )
        .rival(
            "B-tree",
            "SELECT doc->>'category' AS category, count(*) AS documents FROM trees GROUP BY doc->>'category'",
        ),
        Row::new(
            "GROUP BY, 1000 groups",
            "SELECT c.branch, COUNT(1) AS documents FROM c GROUP BY c.branch",
            1_000,
        )
        .at_least(1.2)
        .rival(
            "none",
            "SELECT doc->>'branch' AS branch, count(*) AS documents FROM documents GROUP BY doc->>'branch'",
        )
        .rival(
            "B-tree",
            "SELECT doc->>'branch' AS branch, count(*) AS documents FROM trees GROUP BY doc->>'branch'",
        ),
    ]
}
