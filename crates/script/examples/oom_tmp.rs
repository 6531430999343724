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
    fn read_feed(&mut self, _: Paging<'_>) -> Result<Feed, HostError> { Ok(Feed{rows: (0..50).map(|i| format!("{{\"id\":\"{i}\",\"t\":[1,2,{{}}]}}").into_bytes()).collect(), continuation: None}) }
    fn query(&mut self, _: Query<'_>, p: Paging<'_>) -> Result<Feed, HostError> { self.read_feed(p) }
}
fn main() {
    let sources = [
        "const a=[]; for (let i=0;i<200;i++) a.push({i, s:'x'+i, f:()=>i}); a.sort((x,y)=>y.i-x.i); JSON.parse(JSON.stringify(a)); a.map(x=>x.s).join().split(',').reverse();",
        "const m=new Map(); for (let i=0;i<300;i++) m.set({i}, new Set([i,[i]])); [...m.values()].flatMap(s=>[...s]); const w=new WeakMap(); for (const k of m.keys()) w.set(k, {k});",
        "class A { #x=1; static y=2; constructor(n){ this.n = n; if (n>0) this.c = new A(n-1);} get x(){return this.#x} } const a = new A(100); function* g(){ for (let i=0;i<200;i++) yield {i}; } Array.from(g()).length; const {n, ...rest} = a; [...'héllo wörld'].map(c=>c.codePointAt(0));",
        "(async()=>{ for (let i=0;i<100;i++) { await null; try { await Promise.reject(new Error('e'+i)); } catch (e) { e.stack; } } await Promise.all(Array.from({length:50},(_, i)=>Promise.resolve(i).then(x=>[x]))); })();",
        "let s=''; for (let i=0;i<500;i++) { s += 'abc'+i; } s.replace(/(\\d+)/g,(m)=>m+m).match(/[a-c]+\\d/g).length; new RegExp('(?<n>a|b)*'+'c?'.repeat(50)).exec(s); s.normalize('NFD').toUpperCase(); `${s}${s}`.padEnd(20000).trim();",
        "const p=new Proxy({}, {get:(t,k)=>k, has:()=>true, ownKeys:()=>['a','b'], getOwnPropertyDescriptor:()=>({configurable:true,enumerable:true,value:1})}); for (const k in p) p[k]; ({...p}); new Function('a','return a+1')(1); eval('let q=[1,2,3].map(x=>({x}))'); let b=1n; for (let i=0;i<60;i++) b=b*12345678901234567890n; b.toString(); new Float64Array(500).fill(1).map(x=>x*2).sort(); new Date(0).toString(); ",
        "__.chain().filter(d=>true).map(d=>({d})).sortBy(x=>x.d.id).pluck('d').value((e,f)=>{ const c=getContext().getCollection(); f.forEach(x=>c.createDocument(c.getSelfLink(), x, (e,d)=>{ console.log('%s', d); c.readDocument(c.getAltLink()+'/docs/z', e=>{ e.body; }); })); __.response.setBody(f); });",
        "Object.defineProperty(globalThis,'zz',{get(){throw new TypeError('zz')}}); const o={}; for (let i=0;i<200;i++){ o['k'+i]=i; if(i%3) delete o['k'+(i-1)]; } Object.entries(o).length; label: for (let i=0;i<50;i++){ try { try { zz; } finally { if (i%2) continue label; } } catch(e) { e.message; } } structured = [1,[2,[3]]].flat(5); [3,1,2].toSorted(); Object.groupBy([1,2,3],x=>x%2?'a':'b');",
    ];
    let step: usize = std::env::args().nth(1).and_then(|s| s.parse().ok()).unwrap_or(997);
    let mut n = 0u64; let mut oks = [0u64; 16];
    for (index, source) in sources.iter().enumerate() {
        let source: Arc<str> = format!("function f() {{ {source} }}").into();
        for at in (0..900_000).step_by(step) {
            let limits = Limits { memory_bytes_max: at, ..Limits::default() };
            let scripts = Scripts::new(Settings { limits, ..Settings::default() });
            let script = Script { key: ScriptKey { id: "x".into(), version: "1".into() }, name: "x".into(), source: source.clone() };
            let call = Call { work: Work::Procedure { parameters: b"[1,{\"a\":[1,2,3]}]".to_vec() }, container: Arc::new(Container { self_link: "dbs/a/colls/b".into(), alt_link: "dbs/c/colls/d".into(), ..Container::default() }), request_values: vec![], env: Env::system(), time: None, log: true };
            let r = tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(scripts.execute(script, call, H));
            if r.is_ok() { oks[index] += 1; if oks[index] > 20 { break; } }
            n += 1;
        }
        println!("{index}: {n} runs, {} fine", oks[index]);
    }
}
