//! temporary
#![allow(missing_docs)]
use astrarium_env::Env;
use astrarium_script::*;
use std::sync::Arc;
struct H;
impl Host for H {
    fn create(&mut self, d: &str, _: IndexAction) -> Result<Written, HostError> { Ok(Written{document: d.as_bytes().to_vec(), created: true}) }
    fn upsert(&mut self, d: &str, _: Option<&str>, _: IndexAction) -> Result<Written, HostError> { Ok(Written{document: d.as_bytes().to_vec(), created: true}) }
    fn replace(&mut self, _: DocumentLink<'_>, d: &str, _: Option<&str>, _: IndexAction) -> Result<Written, HostError> { Ok(Written{document: d.as_bytes().to_vec(), created: true}) }
    fn delete(&mut self, _: DocumentLink<'_>, _: Option<&str>) -> Result<(), HostError> { Ok(()) }
    fn read(&mut self, _: DocumentLink<'_>, _: Option<&str>) -> Result<Read, HostError> { Err(HostError::new(404, "no")) }
    fn read_feed(&mut self, _: Paging<'_>) -> Result<Feed, HostError> { Ok(Feed{rows: (0..500).map(|i| format!("{{\"id\":\"{i}\",\"t\":[1,2,{{}}],\"s\":\"{}\"}}", "y".repeat(300)).into_bytes()).collect(), continuation: None}) }
    fn query(&mut self, _: Query<'_>, p: Paging<'_>) -> Result<Feed, HostError> { self.read_feed(p) }
}
fn main() {
    // Each statement is tried on its own, so that a refusal does not end the rest.
    let sources: &[&[&str]] = &[
        &["for (let i=0;i<9000;i++) keep.push({i, s:'x'+i, f:()=>i})", "keep.sort((x,y)=>y.i-x.i)", "JSON.parse(JSON.stringify(keep))", "keep.map(x=>x.s).join().split(',').reverse()", "keep.slice().fill(1).concat(keep).flat()", "[...keep, ...keep].indexOf(5)"],
        &["m=new Map(); for (let i=0;i<9000;i++) m.set('k'+i, i)", "st=new Set([...m.keys()])", "w=new WeakMap(); for (const k of keep) w.set(k,{})", "o={}; for (let i=0;i<9000;i++) o['p'+i]=i", "Object.entries(o).length; Object.keys(o).sort(); JSON.stringify(o)", "for (const k in o) delete o[k]", "Object.assign({}, m, o); Object.fromEntries(m)"],
        &["s='abc'.repeat(20000)", "s.replace(/b/g, m=>m+m)", "s.split('b').join('--')", "s.match(/[ac]+/g).length", "s.normalize('NFD').toUpperCase().padEnd(200000).trim()", "s+s+s; `${s}é`.charCodeAt(5); s.replaceAll('a','ü')", "new RegExp('a?'.repeat(3000)+'(?:b|c)*').exec(s)", "/(?<x>.)(?=b)/gu[Symbol.matchAll](s).next()", "encodeURIComponent(s+'é'); decodeURIComponent(encodeURIComponent(s)); escape(s)", "[...s].map(c=>c.codePointAt(0))"],
        &["f64=new Float64Array(9000).fill(2)", "f64.map(x=>x*2).sort().slice()", "new Uint8Array(70000).subarray(5).set([1,2])", "new ArrayBuffer(50000,{maxByteLength:100000}).resize(90000)", "b=1n; for (let i=0;i<3000;i++) b*=98765432109876543n", "b.toString().length; b>>5n; b%977n", "new DataView(new ArrayBuffer(30000)).setFloat64(8,1)", "Array.from({length:20000},(_, i)=>[i])", "new Array(30000).join('xy'); Array(20000).fill('z').toString()"],
        &["ps=[]; for (let i=0;i<5000;i++) ps.push(Promise.resolve(i).then(x=>[x]))", "Promise.all(ps).then(r=>{ keep.push(r); })", "for (let i=0;i<3000;i++) Promise.reject(i).catch(()=>{})", "(async()=>{ for (let i=0;i<3000;i++) { await null; } })().catch(()=>{})", "for (let i=0;i<3000;i++) queueMicrotask(()=>{ keep.push(i) })", "function* g(){ for (let i=0;i<9000;i++) yield {i}; } keep.push(...Array.from(g()))"],
        &["for (let i=0;i<3000;i++) __.createDocument(__.getSelfLink(), {id:'x'+i, t:'y'.repeat(50)}, (e,d)=>{ keep.push(d); })", "__.chain().filter(d=>true).map(d=>({d})).sortBy(x=>x.d.id).pluck('d').value((e,f)=>{ keep.push(f); __.response.setBody(f); })", "console.log('z'.repeat(50000))", "__.response.appendBody('q'.repeat(60000))", "syms=[]; for (let i=0;i<9000;i++) syms.push(Symbol('s'+i), Symbol.for('g'+i))", "for (let i=0;i<9000;i++) globalThis['gl'+i]=i"],
    ];
    let step: usize = std::env::args().nth(1).and_then(|s| s.parse().ok()).unwrap_or(9973);
    let top: usize = std::env::args().nth(2).and_then(|s| s.parse().ok()).unwrap_or(8_000_000);
    let mut n = 0u64;
    for (index, lines) in sources.iter().enumerate().skip(std::env::args().nth(3).and_then(|s| s.parse().ok()).unwrap_or(0)) {
        let body: String = lines.iter().map(|l| format!("try {{ {l}; }} catch (e) {{ caught = e; }} ")).collect();
        let source: Arc<str> = format!("var keep=[],m,st,w,o,s,f64,b,ps,syms,caught; function f() {{ {body} {body} }}").into();
        let (mut ok, mut bad) = (0, 0);
        for at in (0..top).step_by(step) {
            let limits = Limits { memory_bytes_max: at, ..Limits::default() };
            let scripts = Scripts::new(Settings { limits, ..Settings::default() });
            let script = Script { key: ScriptKey { id: "x".into(), version: "1".into() }, name: "x".into(), source: source.clone() };
            let call = Call { work: Work::Procedure { parameters: b"[1,{\"a\":[1,2,3]}]".to_vec() }, container: Arc::new(Container { self_link: "dbs/a/colls/b".into(), alt_link: "dbs/c/colls/d".into(), ..Container::default() }), request_values: vec![], env: Env::system(), time: None, log: true };
            let r = tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(scripts.execute(script, call, H));
            match r { Ok(_) => ok += 1, Err(f) => { bad += 1; if !f.error.to_string().contains("memory") && bad % 50 == 1 { println!("  {at}: {}", &f.error.to_string()[..120.min(f.error.to_string().len())]); } } }
            n += 1;
        }
        println!("{index}: {n} runs, {ok} fine {bad} not");
    }
}
