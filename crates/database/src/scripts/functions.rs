//! User-defined functions in queries.
//!
//! In: the names that a query calls, a container, and a page to run. Out: what the page gives. The functions are loaded
//! once for a page and called for its rows; one that throws, loops or takes too much memory fails its query and nothing
//! else. The page runs on a thread for such pages, its functions there or in a process of that thread.

use crate::databases::find;
use crate::scripts::{fault, script_of};
use crate::{AccountCore, Error, Link};
use astrarium_catalog::container::Container;
use astrarium_keys::record::RecordKind;
use astrarium_script::{self as script, PageFunctions, Script};
use astrarium_sql_exec::UserFunctions;
use astrarium_sql_syntax::ast::{ExpressionKind, SelectQuery};
use astrarium_sql_syntax::visit::TreePart;
use astrarium_value::Value;
use std::sync::{Arc, OnceLock};

/// The user-defined functions that a query calls, each once.
pub(crate) fn names(query: &SelectQuery) -> Vec<String> {
    let mut names = Vec::new();
    collect(TreePart::Subquery(query), &mut names);
    names
}

fn collect(part: TreePart<'_>, names: &mut Vec<String>) {
    let mut visit = |inner: TreePart<'_>| {
        if let TreePart::Expression(expression) = inner
            && let ExpressionKind::Call { name, user_defined: true, .. } = &expression.kind
            && !names.contains(name)
        {
            names.push(name.clone());
        }
        collect(inner, names);
    };
    match part {
        TreePart::Expression(expression) => expression.parts(&mut visit),
        TreePart::Subquery(query) => query.parts(&mut visit),
    }
}

impl AccountCore {
    /// The functions of these names in a container.
    pub(crate) async fn functions(
        &self,
        container: &Container,
        names: &[String],
    ) -> Result<Vec<Script>, Error> {
        let view = self.catalog().await?;
        let mut scripts = Vec::with_capacity(names.len());
        for name in names {
            let kind = RecordKind::UserDefinedFunction;
            let found = find(&*view, kind, container.rid(), Link::Name(name)).await?;
            scripts.push(script_of(&found.ok_or_else(|| Error::invalid(missing(name)))?)?);
        }
        Ok(scripts)
    }

    /// Runs a page that calls functions.
    pub(crate) async fn run_with_functions<T: Send + 'static>(
        &self,
        functions: Vec<Script>,
        page: impl FnOnce(Functions) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let ended = Arc::new(OnceLock::new());
        let own = Arc::clone(&ended);
        let run = move |functions| page(Functions { functions, ended: own });
        let result = self.shared.scripts.run_page(functions, self.env(), None, run).await;
        // A page that was ended is that, whatever the query has made of the call that failed.
        match (ended.get(), result) {
            (Some(error), _) => Err(fault(error.clone(), String::new())),
            (None, Ok(page)) => page,
            (None, Err(error)) => Err(fault(error, String::new())),
        }
    }
}

fn missing(name: &str) -> String {
    format!("The user-defined function '{name}' does not exist in this container.")
}

/// Functions of one page.
pub(crate) struct Functions {
    functions: PageFunctions,
    /// The call that ended the page: its time was over, or what it ran in has failed.
    ended: Arc<OnceLock<script::Error>>,
}

impl UserFunctions for Functions {
    fn call(&self, name: &str, arguments: &[Value]) -> Result<Value, String> {
        self.functions.call(name, arguments).map_err(|error| {
            let text = error.to_string();
            if matches!(error, script::Error::Timeout { .. } | script::Error::Bug { .. }) {
                self.ended.get_or_init(|| error);
            }
            text
        })
    }

    fn wants_announcements(&self) -> bool {
        self.functions.wants_announcements()
    }

    fn announce(&self, calls: Vec<(Arc<str>, Vec<Value>)>) {
        self.functions.announce(calls);
    }
}

/// Where there is no container, there are no functions.
pub(crate) struct NoFunctions;

impl UserFunctions for NoFunctions {
    fn call(&self, name: &str, _: &[Value]) -> Result<Value, String> {
        Err(missing(name))
    }
}
