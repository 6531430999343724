//! Sources of scripts: any text is compiled or refused, and what it holds runs as a function within its limits, whatever it
//! does. The engine is not ours, so this looks for texts that it does not survive.

use astrarium_env::Env;
use astrarium_script::{PageFunctions, Script, ScriptKey, ScriptLimits, ScriptSettings, Scripts};
use astrarium_value::Value;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};

/// Enough for every loop that ends, and short enough to try many that do not.
const TIME: Duration = Duration::from_millis(20);

static SCRIPTS: LazyLock<(Runtime, Scripts, Env)> = LazyLock::new(|| {
    let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
    let limits = ScriptLimits { memory_bytes_max: 4 << 20, ..ScriptLimits::default() };
    (runtime, Scripts::new(ScriptSettings { limits, ..ScriptSettings::default() }), Env::system())
});
static VERSION: AtomicU64 = AtomicU64::new(0);

pub(crate) fn run(text: &str) {
    let (runtime, scripts, env) = &*SCRIPTS;
    let version: Arc<str> = VERSION.fetch_add(1, Ordering::Relaxed).to_string().into();
    let script =
        Script { key: ScriptKey { id: "fuzz".into(), version }, name: "fuzz".into(), source: text.into() };
    if runtime.block_on(scripts.check(script.clone())).is_ok() {
        let call = |functions: PageFunctions| drop(functions.call("fuzz", &[Value::from("argument")]));
        drop(runtime.block_on(scripts.run_page(vec![script], env, Some(TIME), call)));
    }
}
