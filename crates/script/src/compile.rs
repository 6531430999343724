//! From source to bytecode, and from bytecode to a function in a fresh JavaScript world.
//!
//! In: a source and the name errors show. Out: `Compiled`, which any sandbox of this process can load.
//! The engine's bytecode is not checked when it is loaded, so a `Bytecode` can be made here only, from a source, in this
//! process: it is never read from a file or the network. The two calls that write and load it are the only foreign
//! functions the crate calls itself; the binding has them for modules alone, and scripts are not modules: scripts for the
//! service may use the sloppy mode of the language, which modules do not have.
//!
//! Not here: which function of a source is meant (`source`), keeping what was compiled (`cache`).

use crate::cache::Cache;
use crate::exception::Thrown;
use crate::{Error, Script, ScriptLimits, source};
pub(crate) use bytecode::Bytecode;
use rquickjs::allocator::RustAllocator;
use rquickjs::context::intrinsic;
use rquickjs::{Context, Ctx, Function, Runtime, Value};
use std::sync::Arc;

/// A script that can be loaded without its source.
#[derive(Debug)]
pub(crate) struct Compiled {
    bytecode: Bytecode,
}

impl Compiled {
    /// How much memory it takes.
    pub(crate) fn byte_count(&self) -> usize {
        self.bytecode.byte_count()
    }

    /// The script's function. Runs what the source says outside its functions.
    pub(crate) fn load<'js>(&self, ctx: &Ctx<'js>) -> rquickjs::Result<Option<Function<'js>>> {
        let program: Function<'js> = self.bytecode.load(ctx)?;
        let entry: Value<'js> = program.call(())?;
        Ok(entry.into_function())
    }
}

/// Compiles a script. Runs nothing of it.
pub(crate) fn compile(limits: &ScriptLimits, script: &Script) -> Result<Compiled, Error> {
    let refuse = |message: String| Error::Compile { name: Arc::clone(&script.name), message };
    if script.source.len() > limits.source_bytes_max {
        return Err(refuse(format!("its source is larger than {} bytes.", limits.source_bytes_max)));
    }
    if source::block_count(&script.source) > BLOCKS_MAX {
        return Err(refuse(format!("its source has more than {BLOCKS_MAX} blocks and functions.")));
    }
    let programs = source::programs(&script.source).ok_or_else(|| refuse(NO_FUNCTION.to_owned()))?;
    let file = format!("{}.js", script.name);
    in_compiler(limits.stack_bytes_max, |ctx| {
        let mut result = Bytecode::compile(ctx, &programs.expression, &file);
        if let (Err(_), Some(declarations)) = (&result, programs.declarations) {
            drop(ctx.catch());
            result = Bytecode::compile(ctx, &declarations, &file);
        }
        match result {
            Ok(bytecode) => Ok(Compiled { bytecode }),
            Err(error) => Err(refuse(explain(&mistake(ctx, &error), &script.source))),
        }
    })
    .unwrap_or_else(|error| Err(Error::Bug { name: Arc::clone(&script.name), what: error.to_string() }))
}

/// Whether a source can be stored. A source without any function can be, as on the service; it fails when it is to run.
pub(crate) fn check(cache: &Cache, limits: &ScriptLimits, script: &Script) -> Result<(), Error> {
    match cache.get_or_compile(&script.key, || compile(limits, script)) {
        Err(Error::Compile { message, .. }) if message == NO_FUNCTION => Ok(()),
        result => result.map(drop),
    }
}

/// Compiles a program of ours.
pub(crate) fn compile_own(source: &str, file: &str) -> rquickjs::Result<Bytecode> {
    in_compiler(ScriptLimits::default().stack_bytes_max, |ctx| {
        Bytecode::compile_without_source(ctx, source, file)
    })?
}

/// Why there is nothing to call.
pub(crate) const NO_FUNCTION: &str = "it holds no function: a script is a function, or declares one.";

/// Blocks cost the compiler a kilobyte each, and time that grows with their square: this bounds both, and is more than
/// twice what two megabytes of ordinary source have.
const BLOCKS_MAX: usize = 50_000;

/// Works in a world that can compile, and has nothing else. The worlds scripts run in cannot: the engine's compiler does
/// not survive the want of memory, so it must not work where a script could have used up the memory before.
fn in_compiler<R>(stack_bytes_max: usize, work: impl FnOnce(&Ctx<'_>) -> R) -> rquickjs::Result<R> {
    let runtime = Runtime::new_with_alloc(RustAllocator)?;
    runtime.set_max_stack_size(stack_bytes_max);
    let context =
        Context::custom::<(intrinsic::Eval, intrinsic::RegExpCompiler, intrinsic::RegExp)>(&runtime)?;
    Ok(context.with(|ctx| work(&ctx)))
}

/// What the compiler says. Nothing of a script has run here, so nothing has changed what errors are.
fn mistake(ctx: &Ctx<'_>, error: &rquickjs::Error) -> Thrown {
    let caught = if error.is_exception() { ctx.catch().into_exception() } else { None };
    match caught {
        Some(exception) => {
            let name: Option<String> = exception.as_object().get("name").ok();
            let name = name.as_deref().unwrap_or("SyntaxError");
            let text = format!("{name}: {}", exception.message().unwrap_or_default());
            Thrown::from_stack(&text, &exception.stack().unwrap_or_default())
        }
        None => Thrown::from_text(error.to_string()),
    }
}

fn explain(mistake: &Thrown, source: &str) -> String {
    let line_count = source.lines().count().max(1);
    let text = match mistake.place() {
        // What the engine met there is the end of our program around the source.
        Some((line, _)) if line as usize > line_count => "SyntaxError: the source ends too early".to_owned(),
        Some((line, column)) => format!("{} at line {line}, column {column}", mistake.text),
        None => mistake.text.clone(),
    };
    let hint = if source::looks_like_module(source) {
        " Scripts are not modules: they cannot import or export."
    } else if source::looks_like_typescript(source) {
        " The source looks like TypeScript: compile it to JavaScript before storing it."
    } else {
        ""
    };
    format!("{}.{hint}", text.trim_end_matches('.'))
}

#[expect(
    unsafe_code,
    reason = "the engine loads bytecode unchecked; see the module header for why this is sound"
)]
mod bytecode {
    //! The engine's functions that write and load bytecode.

    use rquickjs::{Ctx, Error, FromJs, Result, Value, qjs};
    use std::ffi::CString;
    use std::mem::MaybeUninit;

    /// Bytecode that the engine of this process made.
    #[derive(Debug)]
    pub(crate) struct Bytecode(Box<[u8]>);

    impl Bytecode {
        pub(crate) fn byte_count(&self) -> usize {
            self.0.len()
        }

        /// Compiles a program in the sloppy mode of the language, without running it.
        pub(crate) fn compile(ctx: &Ctx<'_>, source: &str, file: &str) -> Result<Bytecode> {
            Bytecode::compile_with(ctx, source, file, 0)
        }

        /// The same, for programs whose functions nobody prints: loading takes less time.
        pub(crate) fn compile_without_source(ctx: &Ctx<'_>, source: &str, file: &str) -> Result<Bytecode> {
            Bytecode::compile_with(ctx, source, file, qjs::JS_WRITE_OBJ_STRIP_SOURCE)
        }

        fn compile_with(ctx: &Ctx<'_>, source: &str, file: &str, strip: u32) -> Result<Bytecode> {
            let text = CString::new(source)?;
            let file = CString::new(file)?;
            let flags = qjs::JS_EVAL_TYPE_GLOBAL | qjs::JS_EVAL_FLAG_COMPILE_ONLY;
            let raw = ctx.as_raw().as_ptr();
            // SAFETY: the context lives as long as `ctx`; both texts end with zero, and the engine copies what it keeps.
            let value = unsafe {
                qjs::JS_Eval(raw, text.as_ptr(), source.len() as _, file.as_ptr(), flags.cast_signed())
            };
            let program = owned(ctx, value)?;
            let mut length = MaybeUninit::uninit();
            // SAFETY: `program` is a live value of this context, and `length` is written before a buffer is returned.
            let bytes = unsafe {
                let flags = (qjs::JS_WRITE_OBJ_BYTECODE | strip).cast_signed();
                let buffer = qjs::JS_WriteObject(raw, length.as_mut_ptr(), program.as_raw(), flags);
                if buffer.is_null() {
                    return Err(Error::Exception);
                }
                let bytes = std::slice::from_raw_parts(buffer, length.assume_init() as usize).into();
                qjs::js_free(raw, buffer.cast());
                bytes
            };
            Ok(Bytecode(bytes))
        }

        /// Runs the program in a context: its value is that of the program's last expression.
        pub(crate) fn load<'js, V: FromJs<'js>>(&self, ctx: &Ctx<'js>) -> Result<V> {
            let raw = ctx.as_raw().as_ptr();
            // SAFETY: the bytes were written by the same engine in `compile`, the only place that makes them, and the
            // engine copies them. `JS_EvalFunction` takes over the program it is given.
            let value = unsafe {
                let flags = qjs::JS_READ_OBJ_BYTECODE.cast_signed();
                let program = qjs::JS_ReadObject(raw, self.0.as_ptr(), self.0.len() as _, flags);
                if qjs::JS_IsException(program) {
                    return Err(Error::Exception);
                }
                qjs::JS_EvalFunction(raw, program)
            };
            V::from_js(ctx, owned(ctx, value)?)
        }
    }

    fn owned<'js>(ctx: &Ctx<'js>, value: qjs::JSValue) -> Result<Value<'js>> {
        // SAFETY: the engine returned the value to us, so its one reference is ours to give to the `Value`.
        unsafe {
            if qjs::JS_IsException(value) {
                Err(Error::Exception)
            } else {
                Ok(Value::from_raw(ctx.clone(), value))
            }
        }
    }
}
