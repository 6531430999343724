//! One fresh JavaScript world with its limits: made before it is needed, used by one execution, and put back to how it was.
//!
//! A sandbox is a runtime of the engine with one context in it, both wholly in an `arena`. Making it takes some hundred
//! microseconds; putting its memory back to the state before the first script's first byte takes some ten, and leaves
//! nothing of what a script did. A thread does that after an execution rather than before the next one.
//! Invariants
//! - The world holds the language and the API; no files, network, processes, timers, modules, shared
//!   memory, or code made from text.
//! - Memory, stack and time are limited from the moment the script's first byte is read; memory on top of what the
//!   empty world takes.
//! - What the engine's memory points to outside of it (our native functions) lives as long as the sandbox, whatever a
//!   script lets go of; what outside points into it (values) is gone before memory is put back.
//!
//! Not here: running a script in it (`execution`, `functions`).

mod arena;
mod memory;

use crate::ScriptLimits;
use crate::api::{Program, SandboxState, install, load};
use crate::deadline::Stop;
use arena::Arena;
use memory::LimitedAllocator;
pub(crate) use memory::Quota;
use rquickjs::context::intrinsic;
use rquickjs::{Context, Ctx, Function, Object, Persistent, Runtime, Value};
use std::cell::Cell;
use std::rc::Rc;

/// The parts of the language. Left out are what has no use here (weak references, performance timers), would reach out of
/// the sandbox, or would compile inside it (`compile::in_compiler` says why).
type Language = (
    intrinsic::Date,
    intrinsic::RegExpCompiler,
    intrinsic::RegExp,
    intrinsic::Json,
    intrinsic::Proxy,
    intrinsic::MapSet,
    intrinsic::TypedArrays,
    intrinsic::Promise,
);

/// What a sandbox is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Procedures and triggers: with a collection.
    Procedure,
    /// User-defined functions: without.
    Function,
}

/// A world that no script has seen yet, or that one script is running in.
pub(crate) struct Sandbox {
    // The order of the fields is the order in which they are dropped: values, then the world that holds them.
    hooks: SavedHooks,
    context: Context,
    pub(crate) state: Rc<SandboxState>,
    _runtime: Runtime,
    arena: Rc<Arena>,
    /// How many hold on to the state, which is outside the engine's memory: we, and the native functions.
    state_holders: usize,
    /// How often it may still be put back. If anything outside the engine's memory grows with use, this bounds it.
    renewals_left: Cell<u32>,
}

/// Executions after which a sandbox is made anew.
const RENEWALS_MAX: u32 = 1_000;

/// The functions of our own programs that the engine is driven with.
pub(crate) struct Hooks<'js> {
    /// Prints any value; never throws by itself.
    pub(crate) describe: Function<'js>,
    /// Replaces what is no character in a text.
    pub(crate) well_formed: Function<'js>,
    /// The functions of `collection.js`, where there is a collection.
    pub(crate) collection: Option<CollectionHooks<'js>>,
}

/// How an execution is driven.
pub(crate) struct CollectionHooks<'js> {
    /// Tells the API which execution this is.
    pub(crate) begin: Function<'js>,
    /// Does the next operation waiting; false if there is none.
    pub(crate) step: Function<'js>,
    /// The body of the response, or of the request of a pre-trigger.
    pub(crate) finish: Function<'js>,
}

type Saved = Persistent<Object<'static>>;

struct SavedHooks {
    base: Saved,
    collection: Option<Saved>,
    /// All native functions, so that no script can make the engine free one: their closures are not in its memory, and
    /// would not come back with it.
    _natives: Vec<Persistent<Value<'static>>>,
}

impl Sandbox {
    /// A fresh world.
    pub(crate) fn new(
        limits: &ScriptLimits,
        purpose: Purpose,
        memory_image: bool,
    ) -> rquickjs::Result<Sandbox> {
        let stop = Stop::default();
        let quota = Rc::new(Quota::unlimited());
        let state = Rc::new(SandboxState::new(stop.clone(), Rc::clone(&quota)));
        let arena = Rc::new(if memory_image { Arena::new() } else { Arena::without_stretch() });
        let allocator = LimitedAllocator::new(stop, Rc::clone(&quota), Rc::clone(&arena));
        let runtime = Runtime::new_with_alloc(allocator)?;
        runtime.set_max_stack_size(limits.stack_bytes_max);
        // Never by itself: `memory` says why.
        runtime.set_gc_threshold(usize::MAX);
        let own = Rc::clone(&state);
        runtime.set_interrupt_handler(Some(Box::new(move || {
            own.catch_up();
            own.must_stop()
        })));
        let own = Rc::clone(&state);
        runtime.set_host_promise_rejection_tracker(Some(Box::new(
            move |ctx, promise, reason, is_handled| {
                own.track_rejection(&ctx, &promise, &reason, is_handled);
            },
        )));
        let context = Context::custom::<Language>(&runtime)?;
        let hooks = context.with(|ctx| load_api(&ctx, &state, purpose))?;
        state.collect_with(collector(&context));
        quota.limit_growth(limits.memory_bytes_max);
        let renewals_left = Cell::new(if memory_image && arena.save() { RENEWALS_MAX } else { 0 });
        let state_holders = Rc::strong_count(&state);
        Ok(Sandbox { hooks, context, state, _runtime: runtime, arena, state_holders, renewals_left })
    }

    /// Makes it a world again that no script has seen. Returns whether that was possible. The execution is over: nobody
    /// else knows the sandbox, and no panic has cut anything short.
    pub(crate) fn renew(&mut self) -> bool {
        let left = self.renewals_left.get();
        if left == 0 {
            return false;
        }
        self.renewals_left.set(left - 1);
        self.state.renew();
        // A native function that was freed, or copied, would not be what it was when the memory is. Nothing is known to do
        // that; a world in which it happened is not used again.
        let is_whole = Rc::strong_count(&self.state) == self.state_holders;
        debug_assert!(is_whole, "something outside the engine's memory has outlived an execution");
        if !is_whole {
            return false;
        }
        #[expect(unsafe_code, reason = "replaces the memory under the engine")]
        // SAFETY: the engine is at rest, since nobody can be inside it while we have the sandbox for us alone. Values that
        // were made since the memory was saved are gone: those of an execution end with it, and the state has let go of
        // its own. Values from before (hooks, natives, the context) are counted in the saved memory as they are now.
        let is_restored = unsafe { self.arena.restore() };
        self.state.quota.renew();
        is_restored
    }

    /// Works in the world.
    pub(crate) fn enter<R>(&self, work: impl FnOnce(&Ctx<'_>) -> R) -> R {
        self.context.with(|ctx| work(&ctx))
    }

    /// The functions of our programs.
    pub(crate) fn hooks<'js>(&self, ctx: &Ctx<'js>) -> rquickjs::Result<Hooks<'js>> {
        let base = self.hooks.base.clone().restore(ctx)?;
        let collection = match &self.hooks.collection {
            None => None,
            Some(saved) => {
                let saved = saved.clone().restore(ctx)?;
                Some(CollectionHooks {
                    begin: saved.get("begin")?,
                    step: saved.get("step")?,
                    finish: saved.get("finish")?,
                })
            }
        };
        Ok(Hooks { describe: base.get("describe")?, well_formed: base.get("wellFormed")?, collection })
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        // What a leak of the engine would keep alive must not keep a host, or values of a runtime that is gone.
        drop(self.state.complete());
        self.state.clear();
    }
}

/// Collects garbage while the engine is at work, between two steps of it.
fn collector(context: &Context) -> Box<dyn Fn()> {
    let runtime = context.get_runtime_ptr();
    Box::new(move || {
        #[expect(
            unsafe_code,
            reason = "the safe call needs the engine's lock, which whoever runs a script holds"
        )]
        // SAFETY: `SandboxState` calls this on the engine's thread while it is alive, from the engine's callbacks or between two
        // calls of it: there all reference counts are right, and a collection is allowed.
        unsafe {
            rquickjs::qjs::JS_RunGC(runtime);
        }
    })
}

fn load_api(ctx: &Ctx<'_>, state: &Rc<SandboxState>, purpose: Purpose) -> rquickjs::Result<SavedHooks> {
    let native = install(ctx, state, purpose == Purpose::Procedure)?;
    let natives = native.props::<String, Value<'_>>().map(|property| Ok(Persistent::save(ctx, property?.1)));
    let natives = natives.collect::<rquickjs::Result<_>>()?;
    let base: Object<'_> = load(ctx, Program::Base)?.call((native.clone(),))?;
    let collection = match purpose {
        Purpose::Function => None,
        Purpose::Procedure => {
            let collection: Object<'_> = load(ctx, Program::Collection)?.call((native, base.clone()))?;
            Some(Persistent::save(ctx, collection))
        }
    };
    Ok(SavedHooks { base: Persistent::save(ctx, base), collection, _natives: natives })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::Cache;
    use crate::compile::compile;
    use crate::counting::held_bytes;
    use crate::{
        Call, Host, HostError, IndexAction, Paging, Read, RowPage, ScriptContainer, ScriptQuery, ScriptWork,
        Written,
    };
    use crate::{DocumentLink, Script, ScriptKey, execution};
    use astrarium_env::Env;
    use std::sync::Arc;

    /// A host that agrees to everything.
    struct AnyHost;

    impl Host for AnyHost {
        fn create(&mut self, document: &str, _: IndexAction) -> Result<Written, HostError> {
            Ok(Written { document: document.as_bytes().to_vec(), created: true })
        }

        fn upsert(&mut self, document: &str, _: Option<&str>, _: IndexAction) -> Result<Written, HostError> {
            self.create(document, IndexAction::Default)
        }

        fn replace(
            &mut self,
            _: DocumentLink<'_>,
            document: &str,
            _: Option<&str>,
            _: IndexAction,
        ) -> Result<Written, HostError> {
            self.create(document, IndexAction::Default)
        }

        fn delete(&mut self, _: DocumentLink<'_>, _: Option<&str>) -> Result<(), HostError> {
            Err(HostError::new(404, "not there"))
        }

        fn read(&mut self, _: DocumentLink<'_>, _: Option<&str>) -> Result<Read, HostError> {
            Ok(Read::Document(br#"{"id":"1"}"#.to_vec()))
        }

        fn read_feed(&mut self, _: Paging<'_>) -> Result<RowPage, HostError> {
            Ok(RowPage { rows: vec![b"{}".to_vec(); 50], continuation: None })
        }

        fn query(&mut self, _: ScriptQuery<'_>, paging: Paging<'_>) -> Result<RowPage, HostError> {
            self.read_feed(paging)
        }
    }

    const HARMLESS_AND_HARMFUL: &[&str] = &[
        "",
        "__.createDocument(__.getSelfLink(), { id: '1' }, (error, made) => __.response.setBody(made));",
        "__.filter(() => true); __.chain().map(x => x).value(); __.queryDocuments(__.getSelfLink(), 'SELECT 1', () => {});",
        "__.deleteDocument(__.getAltLink() + '/docs/1', error => { throw error; });",
        "console.log('x'.repeat(1e5)); new Date(); Math.random(); getContext().abort(new Error('left'));",
        "for (let i = 0; i < 200; i++) Promise.reject(new Error(i)); new Promise(() => {});",
        "globalThis.kept = Array.from({ length: 1e5 }, (_, i) => ({ i })); globalThis.text = 'x'.repeat(1e7);",
        "for (const name of Reflect.ownKeys(globalThis)) { try { delete globalThis[name]; } catch {} }",
        "const f = () => f(); f();",
        "const all = []; for (;;) all.push(new Array(1e5).fill(7));",
        "class A { #x = new Map([[1, new Set([2])]]); } globalThis.a = new A(); /x(y)/.exec('xy'); JSON.parse('[1]');",
        "throw { toString() { throw 1; }, get stack() { return 5; } };",
    ];

    /// The image holds all that the engine has; what is outside must be as large after an execution as before.
    #[test]
    fn nothing_outside_the_image_survives_an_execution() {
        let limits = ScriptLimits { memory_bytes_max: 16 << 20, ..ScriptLimits::default() };
        let cache = Cache::new(usize::MAX);
        let mut sandbox = Sandbox::new(&limits, Purpose::Procedure, true).expect("a sandbox");
        let (env, container) = (Env::system(), Arc::new(ScriptContainer::default()));
        let mut run = |number: usize| {
            let key = ScriptKey { id: number.to_string().into(), version: "1".into() };
            let source = format!("function f() {{ {} }}", HARMLESS_AND_HARMFUL[number]);
            let script = Script { key, name: "test".into(), source: source.into() };
            let compiled = cache.get_or_compile(&script.key, || compile(&limits, &script));
            assert!(compiled.is_ok(), "{}", script.source);
            drop(compiled);
            let call = Call {
                work: ScriptWork::Procedure { parameters: b"[1]".to_vec() },
                container: Arc::clone(&container),
                request_values: vec![("name".to_owned(), "value".to_owned())],
                env: env.clone(),
                time: None,
                log: true,
                ahead: true,
            };
            let deadline = limits.deadline(limits.time);
            drop(execution::run(&sandbox, &cache, &limits, deadline, &script, &call, AnyHost));
            assert!(sandbox.renew(), "{}", script.source);
        };
        // What is made once in the life of a thread or of a script is made first.
        for number in (0..HARMLESS_AND_HARMFUL.len()).chain(0..1) {
            run(number);
        }
        let before = held_bytes();
        for round in 0..3 {
            for (number, source) in HARMLESS_AND_HARMFUL.iter().enumerate() {
                run(number);
                assert_eq!(held_bytes() - before, 0, "in round {round} something was left by {source}");
            }
        }
    }
}
