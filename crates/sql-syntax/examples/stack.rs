fn main() {
    let unit = std::env::args().nth(1).unwrap();
    let kb: usize = std::env::args().nth(2).unwrap().parse().unwrap();
    std::thread::Builder::new()
        .stack_size(kb * 1024)
        .spawn(move || {
            let text = format!("SELECT VALUE {}", unit.repeat(1000));
            let _ = astrarium_sql_syntax::parse(&text);
        })
        .unwrap()
        .join()
        .unwrap();
}
