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

use crate::Limits;
use crate::api::{Program, State, install, load};
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
    pub(crate) state: Rc<State>,
    _runtime: Runtime,
    arena: Rc<Arena>,
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
    pub(crate) fn new(limits: &Limits, purpose: Purpose, memory_image: bool) -> rquickjs::Result<Sandbox> {
        let stop = Stop::default();
        let quota = Rc::new(Quota::unlimited());
        let state = Rc::new(State::new(stop.clone(), Rc::clone(&quota)));
        let arena = Rc::new(if memory_image { Arena::new() } else { Arena::without_stretch() });
        let allocator = LimitedAllocator::new(stop, Rc::clone(&quota), Rc::clone(&arena));
        let runtime = Runtime::new_with_alloc(allocator)?;
        runtime.set_max_stack_size(limits.stack_bytes_max);
        // Never by itself: `memory` says why.
        runtime.set_gc_threshold(usize::MAX);
        let own = Rc::clone(&state);
        runtime.set_interrupt_handler(Some(Box::new(move || own.must_stop())));
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
        Ok(Sandbox { hooks, context, state, _runtime: runtime, arena, renewals_left })
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
        // SAFETY: `State` calls this on the engine's thread while it is alive, from the engine's callbacks or between two
        // calls of it: there all reference counts are right, and a collection is allowed.
        unsafe {
            rquickjs::qjs::JS_RunGC(runtime);
        }
    })
}

fn load_api(ctx: &Ctx<'_>, state: &Rc<State>, purpose: Purpose) -> rquickjs::Result<SavedHooks> {
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
