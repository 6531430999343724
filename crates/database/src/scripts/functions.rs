//! User-defined functions in queries.
//!
//! In: the names that a query calls, and a container. Out: what evaluates the calls. The functions are loaded once for a
//! page and called for its rows; one that throws, loops or takes too much memory fails its query and nothing else.

use crate::databases::find;
use crate::scripts::script_of;
use crate::{Account, Error, Link};
use astrarium_catalog::container::Container;
use astrarium_keys::record::RecordKind;
use astrarium_script::UdfSession;
use astrarium_sql_exec::UserFunctions;
use astrarium_sql_syntax::ast::{ExpressionKind, Query};
use astrarium_sql_syntax::visit::Part;
use astrarium_value::Value;

/// The user-defined functions that a query calls, each once.
pub(crate) fn names(query: &Query) -> Vec<String> {
    let mut names = Vec::new();
    collect(Part::Subquery(query), &mut names);
    names
}

fn collect(part: Part<'_>, names: &mut Vec<String>) {
    let mut visit = |inner: Part<'_>| {
        if let Part::Expression(expression) = inner
            && let ExpressionKind::Call { name, user_defined: true, .. } = &expression.kind
            && !names.contains(name)
        {
            names.push(name.clone());
        }
        collect(inner, names);
    };
    match part {
        Part::Expression(expression) => expression.parts(&mut visit),
        Part::Subquery(query) => query.parts(&mut visit),
    }
}

impl Account {
    /// The functions of these names in a container.
    pub(crate) async fn functions(
        &self,
        container: &Container,
        names: &[String],
    ) -> Result<Functions, Error> {
        let snapshot = self.engine().snapshot();
        let mut scripts = Vec::with_capacity(names.len());
        for name in names {
            let kind = RecordKind::UserDefinedFunction;
            let found = find(&*snapshot, kind, container.rid(), Link::Name(name)).await?;
            scripts.push(script_of(&found.ok_or_else(|| Error::invalid(missing(name)))?)?);
        }
        Ok(Functions { session: self.shared.scripts.open_functions(scripts, self.env(), None) })
    }
}

fn missing(name: &str) -> String {
    format!("The user-defined function '{name}' does not exist in this container.")
}

/// Functions of one page.
pub(crate) struct Functions {
    session: UdfSession,
}

impl UserFunctions for Functions {
    fn call(&self, name: &str, arguments: &[Value]) -> Result<Value, String> {
        self.session.call(name, arguments).map_err(|error| error.to_string())
    }
}

/// Where there is no container, there are no functions.
pub(crate) struct NoFunctions;

impl UserFunctions for NoFunctions {
    fn call(&self, name: &str, _: &[Value]) -> Result<Value, String> {
        Err(missing(name))
    }
}
