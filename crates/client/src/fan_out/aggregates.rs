//! Partial aggregates of ranges become final ones.
//!
//! In: rows of the rewritten query: `[{"item":…}]` of `SELECT VALUE COUNT(1)`, or `{"groupByItems":[…],"payload":{…}}`. Out: final rows.
//! A sum or average of which one part is undefined is undefined, as SDKs have it.

use astrarium_value::json::{write_number, write_string};
use astrarium_value::{Object, Value};
use bytes::Bytes;
use std::collections::BTreeMap;

/// What an aggregate is called in plans.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MergedAggregate {
    Sum,
    Min,
    Max,
    Average,
}

/// All groups of a query; one without `GROUP BY` has a single one.
#[derive(Debug)]
pub(super) struct MergedGroups {
    /// The aggregate of a `SELECT VALUE`.
    single: Option<MergedAggregate>,
    /// Aggregates by alias; those without one are properties of the group.
    by_alias: BTreeMap<String, MergedAggregate>,
    is_grouped: bool,
    partials: BTreeMap<Vec<Value>, Partial>,
}

/// What is known of one group so far.
#[derive(Debug)]
enum Partial {
    Single(RunningAggregate),
    Members(Vec<(String, PartialMember)>),
}

#[derive(Debug)]
enum PartialMember {
    Plain(Value),
    Aggregated(RunningAggregate),
}

/// A running aggregate.
#[derive(Debug)]
struct RunningAggregate {
    kind: MergedAggregate,
    /// Sum, least or greatest so far; none for an undefined one.
    value: Value,
    count: f64,
    is_begun: bool,
}

impl MergedGroups {
    /// None if the plan has nothing to aggregate; else what cannot be aggregated, as a clause.
    pub(super) fn of_plan(info: &serde_json::Value) -> Result<Option<MergedGroups>, String> {
        let list =
            |name: &str| info.get(name).and_then(serde_json::Value::as_array).cloned().unwrap_or_default();
        let aliases = info.get("groupByAliasToAggregateType").and_then(serde_json::Value::as_object);
        let has_value = info.get("hasSelectValue").and_then(serde_json::Value::as_bool) == Some(true);
        let aggregates = list("aggregates");
        let is_grouped = !list("groupByExpressions").is_empty();
        let mut by_alias = BTreeMap::new();
        for (alias, kind) in aliases.into_iter().flatten() {
            if let Some(kind) = kind.as_str() {
                by_alias.insert(alias.clone(), aggregate(kind)?);
            }
        }
        let single = match aggregates.first().and_then(serde_json::Value::as_str) {
            Some(kind) if by_alias.is_empty() || has_value => Some(aggregate(kind)?),
            _ => None,
        };
        if !is_grouped && single.is_none() && by_alias.is_empty() {
            return Ok(None);
        }
        Ok(Some(MergedGroups { single, by_alias, is_grouped, partials: BTreeMap::new() }))
    }

    /// Adds a row of a range; tells about how many bytes more are held.
    pub(super) fn add(&mut self, row: &Value) -> usize {
        let (key, payload) = match row {
            Value::Array(items) => (Vec::new(), items.first().cloned().unwrap_or_default()),
            Value::Object(object) => {
                let keys = object.get("groupByItems").map(group_key).unwrap_or_default();
                (keys, object.get("payload").cloned().unwrap_or_default())
            }
            _ => (Vec::new(), Value::Undefined),
        };
        let key = if self.is_grouped { key } else { Vec::new() };
        let mut added = 0;
        if !self.partials.contains_key(&key) {
            added = 200 + key.len() * 100;
            let begun = self.begin(&payload);
            self.partials.insert(key.clone(), begun);
        }
        let partial = self.partials.get_mut(&key);
        match (partial, &payload) {
            (Some(Partial::Single(sum)), payload) => sum.add(payload),
            (Some(Partial::Members(members)), Value::Object(payload)) => {
                for (alias, member) in members {
                    if let PartialMember::Aggregated(sum) = member {
                        sum.add(payload.get(alias).unwrap_or(&Value::Undefined));
                    }
                }
            }
            _ => {}
        }
        added
    }

    /// The final rows, in the order of their groups; afterwards there are none.
    pub(super) fn take_rows(&mut self) -> Vec<Bytes> {
        let groups = std::mem::take(&mut self.partials);
        groups.into_values().filter_map(Partial::finished).collect()
    }

    fn begin(&self, payload: &Value) -> Partial {
        if let Some(kind) = self.single {
            return Partial::Single(RunningAggregate::new(kind));
        }
        let Value::Object(payload) = payload else { return Partial::Members(Vec::new()) };
        let members = payload.iter().map(|(alias, value)| {
            let member = match self.by_alias.get(alias) {
                Some(kind) => PartialMember::Aggregated(RunningAggregate::new(*kind)),
                None => PartialMember::Plain(value.clone()),
            };
            (alias.to_owned(), member)
        });
        Partial::Members(members.collect())
    }
}

impl Partial {
    fn finished(self) -> Option<Bytes> {
        let mut out = Vec::new();
        match self {
            Partial::Single(sum) => write(&sum.finished(), &mut out)?,
            Partial::Members(members) => {
                out.push(b'{');
                for (alias, member) in members {
                    let value = match member {
                        PartialMember::Plain(value) => value,
                        PartialMember::Aggregated(sum) => sum.finished(),
                    };
                    if value.is_undefined() {
                        continue;
                    }
                    if out.len() > 1 {
                        out.push(b',');
                    }
                    write_string(&alias, &mut out);
                    out.push(b':');
                    write(&value, &mut out)?;
                }
                out.push(b'}');
            }
        }
        Some(out.into())
    }
}

impl RunningAggregate {
    fn new(kind: MergedAggregate) -> RunningAggregate {
        RunningAggregate { kind, value: Value::Number(0.0), count: 0.0, is_begun: false }
    }

    /// Adds what a range says: `{"item":…}`, and for least and greatest `item2` with how many values there were.
    fn add(&mut self, part: &Value) {
        let Value::Object(part) = part else { return self.undefine() };
        let item = part.get("item").cloned().unwrap_or_default();
        match self.kind {
            MergedAggregate::Sum => self.add_number(&item, 0.0),
            MergedAggregate::Average => match &item {
                Value::Object(pair) => {
                    let count = number(pair, "count").unwrap_or_default();
                    let sum = pair.get("sum").cloned().unwrap_or_default();
                    if count > 0.0 || !sum.is_undefined() {
                        self.add_number(&sum, count);
                    }
                }
                _ => self.undefine(),
            },
            MergedAggregate::Min | MergedAggregate::Max => {
                if let Some(Value::Object(pair)) = part.get("item2")
                    && number(pair, "count") == Some(0.0)
                {
                    return;
                }
                let is_better = match self.kind {
                    MergedAggregate::Min => item < self.value,
                    _ => item > self.value,
                };
                if !item.is_undefined() && (!self.is_begun || is_better) {
                    self.value = item;
                    self.is_begun = true;
                }
            }
        }
    }

    fn add_number(&mut self, item: &Value, count: f64) {
        match (item, &mut self.value) {
            (Value::Number(item), Value::Number(sum)) => {
                *sum += item;
                self.count += count;
                self.is_begun = true;
            }
            _ => self.undefine(),
        }
    }

    fn undefine(&mut self) {
        self.value = Value::Undefined;
    }

    fn finished(self) -> Value {
        match (self.kind, self.value) {
            (MergedAggregate::Average, Value::Number(_)) if self.count <= 0.0 => Value::Undefined,
            (MergedAggregate::Average, Value::Number(sum)) => Value::Number(sum / self.count),
            (MergedAggregate::Min | MergedAggregate::Max, _) if !self.is_begun => Value::Undefined,
            (_, value) => value,
        }
    }
}

fn aggregate(name: &str) -> Result<MergedAggregate, String> {
    match name {
        "Count" | "Sum" | "CountIf" => Ok(MergedAggregate::Sum),
        "Min" => Ok(MergedAggregate::Min),
        "Max" => Ok(MergedAggregate::Max),
        "Average" => Ok(MergedAggregate::Average),
        other => Err(format!("it has the aggregate {other}")),
    }
}

/// Items of `groupByItems`; what is absent is undefined.
fn group_key(items: &Value) -> Vec<Value> {
    let Value::Array(items) = items else { return Vec::new() };
    let item = |item: &Value| match item {
        Value::Object(item) => item.get("item").cloned().unwrap_or_default(),
        _ => Value::Undefined,
    };
    items.iter().map(item).collect()
}

fn number(object: &Object, name: &str) -> Option<f64> {
    match object.get(name) {
        Some(Value::Number(number)) => Some(*number),
        _ => None,
    }
}

/// The value as JSON; none if it has no such form.
fn write(value: &Value, out: &mut Vec<u8>) -> Option<()> {
    match value {
        Value::Number(number) if number.is_finite() => write_number(*number, out),
        value if !value.is_undefined() && value.is_json() => value.write_json(out),
        _ => return None,
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use astrarium_value::json::Text;

    fn merged(info: &str, rows: &[&str]) -> Vec<String> {
        let mut groups = MergedGroups::of_plan(&serde_json::from_str(info).unwrap()).unwrap().unwrap();
        for row in rows {
            groups.add(&Text::parse(row.as_bytes()).unwrap().root().to_value());
        }
        groups.take_rows().iter().map(|row| String::from_utf8_lossy(row).into_owned()).collect()
    }

    #[test]
    fn values() {
        let info = |kind: &str| format!("{{\"aggregates\":[\"{kind}\"],\"hasSelectValue\":true}}");
        assert_eq!(merged(&info("Count"), &["[{\"item\":2}]", "[{\"item\":3}]"]), ["5"]);
        assert_eq!(merged(&info("Sum"), &["[{\"item\":2.5}]", "[{}]"]), [""; 0]);
        let average = [
            "[{\"item\":{\"sum\":4,\"count\":2}}]",
            "[{\"item\":{\"sum\":5,\"count\":1}}]",
            "[{\"item\":{\"count\":0}}]",
        ];
        assert_eq!(merged(&info("Average"), &average), ["3"]);
        let least = [
            "[{\"item\":\"b\",\"item2\":{\"min\":\"b\",\"count\":2}}]",
            "[{\"item2\":{\"count\":0}}]",
            "[{\"item\":\"a\",\"item2\":{\"min\":\"a\",\"count\":1}}]",
        ];
        assert_eq!(merged(&info("Min"), &least), ["\"a\""]);
        assert_eq!(merged(&info("Max"), &least), ["\"b\""]);
    }

    #[test]
    fn groups() {
        let info = "{\"groupByExpressions\":[\"c.a\"],\"groupByAliases\":[\"a\",\"n\"],\"groupByAliasToAggregateType\":{\"a\":null,\"n\":\"Count\"},\
                    \"aggregates\":[\"Count\"]}";
        let row = |a: &str, n: u32| {
            format!(
                "{{\"groupByItems\":[{{\"item\":{a}}}],\"payload\":{{\"a\":{a},\"n\":{{\"item\":{n}}}}}}}"
            )
        };
        let rows = [row("1", 2), row("2", 1), row("1", 3)];
        let rows: Vec<&str> = rows.iter().map(String::as_str).collect();
        assert_eq!(merged(info, &rows), ["{\"a\":1,\"n\":5}", "{\"a\":2,\"n\":1}"]);
        let bad = serde_json::json!({"aggregates": ["MakeSet"]});
        assert!(MergedGroups::of_plan(&bad).is_err());
        assert!(MergedGroups::of_plan(&serde_json::json!({"aggregates": []})).unwrap().is_none());
    }
}
