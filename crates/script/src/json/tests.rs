//! Both directions beside the engine's own.

use super::printer::PLAIN_CLASS;
use super::{print, read};
use proptest::prelude::*;
use rquickjs::{Context, Ctx, Runtime, Value};

fn with_engine<R>(work: impl FnOnce(&Ctx<'_>) -> R) -> R {
    let runtime = Runtime::new().expect("a runtime");
    let context = Context::full(&runtime).expect("a context");
    context.with(|ctx| work(&ctx))
}

/// What was printed or thrown, and what code of the script ran meanwhile.
fn printed(ctx: &Ctx<'_>, source: &str, ours: bool) -> (Result<Option<String>, String>, String) {
    let value: Value<'_> = ctx.eval(format!("globalThis.log = ''; ({source})")).expect(source);
    let text = if ours {
        print(ctx, &value).map(|text| text.map(|text| String::from_utf8(text).expect("UTF-8")))
    } else {
        ctx.json_stringify(value).map(|text| text.map(|text| text.to_string().expect("a text")))
    };
    let text = text.map_err(|_| {
        let thrown = ctx.catch();
        thrown.as_exception().and_then(rquickjs::Exception::message).unwrap_or_else(|| format!("{thrown:?}"))
    });
    (text, ctx.globals().get("log").expect("a log"))
}

#[test]
fn values_are_printed_as_the_engine_prints_them() {
    let sources = [
        "undefined",
        "null",
        "true",
        "-0",
        "[0, -1, 2147483648, 0.1, 1e21, 1e-7, NaN, Infinity, -2147483648]",
        "'plain'",
        r#""\"\\\b\t\n\f\r\u0000\u001f\u007f/äöü€𝄞""#,
        r#"["\ud800", "x\udfffy", "\ud834\udd1e", "\ud7ff", "\ue000"]"#,
        "'rope' + 'x'.repeat(9000) + 'ä'.repeat(9000)",
        "Symbol('s')",
        "() => 1",
        "[undefined, () => 1, Symbol('s'), , 5]",
        "({ a: undefined, b: () => 1, c: Symbol('s'), d: 1, [Symbol('e')]: 2, f: undefined })",
        "({ 2: 'b', 1: 'a', x: 'c', '-1': 'd', '': 'e', 'ä€': 'f', '\\ud800': 'g', '\"': 'h' })",
        "Object.defineProperty({ a: 1 }, 'hidden', { value: 1 })",
        "Object.create({ inherited: 1 }, { own: { value: 2, enumerable: true } })",
        "new Date(0)",
        "({ at: new Date(0), none: new Date(NaN), list: [new Date(1)] })",
        "[new Number(3), new String('x'), new Boolean(false), Object(null)]",
        "({ n: new Number(3), s: new String('x'), b: new Boolean(false) })",
        "[new Map([[1, 2]]), new Set([1]), new Error('e'), /x/g, new Uint8Array(2), new ArrayBuffer(1)]",
        "({ toJSON(key) { log += `<${key}>`; return { key }; } })",
        "({ a: { toJSON(key) { log += `<${key}>`; return key; } }, b: [1, { toJSON: key => typeof key + key }] })",
        "({ a: { toJSON: () => undefined }, b: { toJSON: () => new Date(0) }, c: { toJSON: 5 } })",
        "({ get a() { log += 'a'; return 1; }, get b() { log += 'b'; delete this.c; return { get x() { log += 'x'; return [] } }; }, c: 3 })",
        "({ a: 1, get b() { throw new Error('thrown'); } })",
        "new Proxy({ a: 1, b: [2] }, { get(t, k) { log += String(k) + ';'; return t[k]; }, ownKeys(t) { log += 'keys;'; return Reflect.ownKeys(t); } })",
        "({ p: new Proxy([1, 2], { get(t, k) { log += String(k) + ';'; return t[k]; } }) })",
        "((a) => { a.self = a; return a; })({})",
        "((a) => { a.push([a, a]); return a; })([])",
        "((a) => { for (let i = 0; i < 200; i++) a = [a, { a }].slice(0, 1); return a; })([1])",
        "((a) => ({ x: a, y: a, z: [a, a] }))({ shared: 1 })",
        "1n",
        "({ big: 1n })",
        "(class A { x = 1; #y = 2; get z() { return 3; } }, new (class A { x = 1; #y = 2; get z() { return 3; } })())",
        "(function () { return arguments; })(1, 'b')",
        "Object.assign([1, 2], { extra: 3 })",
        "Object.freeze({ a: [Object.freeze([])], b: {} })",
    ];
    with_engine(|ctx| {
        for source in sources {
            assert_eq!(printed(ctx, source, true), printed(ctx, source, false), "{source}");
        }
        let _: () =
            ctx.eval("Object.prototype.toJSON = function (key) { log += `<${key}>`; return 7; }").unwrap();
        for source in ["({ a: 1 })", "[{ b: 2 }, 3]", "'text'"] {
            assert_eq!(printed(ctx, source, true), printed(ctx, source, false), "{source}");
        }
    });
}

#[test]
fn plain_objects_have_the_class_that_we_know() {
    with_engine(|ctx| {
        for (source, is_plain) in
            [("({})", true), ("new (class A {})()", true), ("[]", false), ("new Date()", false)]
        {
            let value: Value<'_> = ctx.eval(source).expect(source);
            #[expect(unsafe_code, reason = "looks at the class of a live value")]
            let class = unsafe { rquickjs::qjs::JS_GetClassID(value.as_raw()) };
            assert_eq!(class == PLAIN_CLASS, is_plain, "{source}");
        }
    });
}

/// What a text is to the engine after it was read, with the order of its members and the kinds of its numbers.
fn shown(ctx: &Ctx<'_>, text: &str, ours: bool) -> Result<String, String> {
    let value = if ours { read(ctx, text) } else { ctx.json_parse(text) };
    let value = value.map_err(|_| {
        let thrown = ctx.catch();
        thrown.as_exception().and_then(rquickjs::Exception::message).unwrap_or_default()
    })?;
    let show: rquickjs::Function<'_> = ctx
        .eval(
            "(function show(v) { if (Object.is(v, -0)) return '-0'; if (Array.isArray(v)) return '[' + v.map(show) + ']';
              if (typeof v === 'string') return JSON.stringify(v);
              return v === null || typeof v !== 'object' ? String(v) : '{' + Reflect.ownKeys(v).map(k =>
                  JSON.stringify(k) + JSON.stringify(Object.getOwnPropertyDescriptor(v, k)) + show(v[k])) + '}'; })",
        )
        .expect("a function");
    Ok(show.call((value,)).expect("a text"))
}

fn check_read(ctx: &Ctx<'_>, text: &str) {
    assert_eq!(shown(ctx, text, true), shown(ctx, text, false), "{text}");
}

#[test]
fn texts_are_read_as_the_engine_reads_them() {
    let deep = format!("{}1{}", "[".repeat(100), "]".repeat(100));
    let texts = [
        "",
        " ",
        "null",
        "true",
        "false",
        "tru",
        "nul",
        "1",
        "-1",
        "-0",
        "0",
        "-0.0",
        "01",
        "1.",
        ".5",
        "1e5",
        "1E+5",
        "1e",
        "-",
        "2147483647",
        "2147483648",
        "-2147483648",
        "-2147483649",
        "9007199254740993",
        "1e400",
        "0.1",
        "1 2",
        "\"\"",
        "\"a\"",
        "\"a",
        "\"\\n\\u0041\\ud834\\udd1e\\ud800\"",
        "\"\\x\"",
        "\"\\",
        "\"\\\"",
        "\"a\nb\"",
        "\"äöü€𝄞\"",
        "[]",
        "[ ]",
        "[1,2]",
        "[1,]",
        "[,1]",
        "[1 2]",
        "[1",
        " [ 1 , \"a\" , [ ] , { } ] ",
        "{}",
        "{ }",
        "{\"a\":1}",
        "{\"a\":1,}",
        "{\"a\" 1}",
        "{a:1}",
        "{\"a\":1,\"a\":2,\"b\":3}",
        "{\"b\":1,\"1\":2,\"0\":3,\"-1\":4,\"01\":5}",
        "{\"__proto__\":{\"x\":1},\"toJSON\":2,\"constructor\":3}",
        "{\"\":1,\"ä\":2,\"Ã¤\":3,\"€\":4,\"\\u0061\":5,\"a\":6}",
        "{\"a\":[{\"b\":[{\"c\":null}]}]}",
        "{\"a\":}",
        "{\"a\":1]",
        "\u{feff}1",
        "1\u{a0}",
        &deep,
    ];
    with_engine(|ctx| texts.iter().for_each(|text| check_read(ctx, text)));
}

fn json() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("null".to_owned()),
        any::<bool>().prop_map(|value| value.to_string()),
        any::<i64>().prop_map(|value| value.to_string()),
        any::<f64>().prop_filter("finite", |value| value.is_finite()).prop_map(|value| format!("{value:e}")),
        "[ -~äöü€𝄞\\n\\t]{0,12}".prop_map(|text| serde_json::Value::from(text).to_string()),
    ];
    leaf.prop_recursive(4, 40, 6, |inner| {
        let member = ("[a-c0-2ä\"]{0,2}", inner.clone());
        prop_oneof![
            proptest::collection::vec(inner, 0..6).prop_map(|elements| format!("[{}]", elements.join(", "))),
            proptest::collection::vec(member, 0..6).prop_map(|members| {
                let members = members.into_iter();
                let members =
                    members.map(|(name, value)| format!("{}: {value}", serde_json::Value::from(name)));
                format!("{{{}}}", members.collect::<Vec<_>>().join(","))
            }),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_text_is_read_and_printed_as_by_the_engine(text in json(), cut in any::<proptest::sample::Index>()) {
        with_engine(|ctx| {
            check_read(ctx, &text);
            let mut part = text.clone();
            part.truncate((0..=cut.index(text.len() + 1)).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0));
            check_read(ctx, &part);
            let value = ctx.json_parse(text.as_str()).expect("a value");
            let theirs = ctx.json_stringify(value.clone()).expect("printed").expect("a text").to_string().expect("UTF-8");
            let ours = print(ctx, &value).expect("printed").expect("a text");
            assert_eq!(String::from_utf8(ours).expect("UTF-8"), theirs);
        });
    }
}
