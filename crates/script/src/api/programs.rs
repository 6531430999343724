//! Our own programs in JavaScript, compiled when they are first needed and kept for the life of the process.

use super::OWN_FILE;
use crate::compile::{Bytecode, compile_own};
use rquickjs::{Ctx, Function};
use std::sync::OnceLock;

/// A file of `api/`. Each is one function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Program {
    /// For every script.
    Base,
    /// For procedures and triggers.
    Collection,
    /// For scripts that use dates.
    Clock,
    /// For scripts that use queries in JavaScript.
    Query,
}

static COMPILED: [OnceLock<Bytecode>; 4] = [const { OnceLock::new() }; 4];

/// The function of a program, in a context.
pub(crate) fn load<'js>(ctx: &Ctx<'js>, program: Program) -> rquickjs::Result<Function<'js>> {
    let (index, source) = match program {
        Program::Base => (0, include_str!("base.js")),
        Program::Collection => (1, include_str!("collection.js")),
        Program::Clock => (2, include_str!("clock.js")),
        Program::Query => (3, include_str!("query.js")),
    };
    let place = &COMPILED[index];
    if let Some(bytecode) = place.get() {
        return bytecode.load(ctx);
    }
    // The exception of a mistake would be in the compiler's world, not in this one.
    let compiled = compile_own(source, OWN_FILE).map_err(|_| rquickjs::Error::Unknown)?;
    place.get_or_init(|| compiled).load(ctx)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rquickjs::{Context, Runtime};

    #[test]
    fn our_programs_are_functions() {
        let runtime = Runtime::new().expect("a runtime");
        let context = Context::base(&runtime).expect("a context");
        for program in [Program::Base, Program::Collection, Program::Clock, Program::Query] {
            context.with(|ctx| assert!(load(&ctx, program).is_ok(), "{program:?}"));
        }
    }
}
