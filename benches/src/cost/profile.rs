//! A profile as callgrind writes it: sums over all instructions, and what is counted apart.
//!
//! In: a file of `--dump-instr=yes --compress-pos=no`. Each line of cost has the address of an instruction within its program or
//! library, a source line, and its counts; the line behind `calls=` has the cost of what was called, which stands at its own place too.
//! Callgrind takes each step of a repeated string instruction (`rep movs`, `rep stos`) for an instruction, though the processor moves
//! 16 bytes and more at once. So these are found by their bytes in the program, and counted as bytes instead.

use super::counts::Counts;
use anyhow::Context as _;
use std::collections::HashMap;
use std::path::Path;

/// Functions that allocate, as the allocator names them.
const ALLOCATING: [&str; 7] = [
    "mi_malloc",
    "mi_malloc_aligned",
    "mi_zalloc",
    "mi_zalloc_aligned",
    "mi_realloc",
    "mi_realloc_aligned",
    "mi_calloc",
];
const CLOCK: &str = "clock_gettime";
/// What runs these is no request's: it is there every second, however many requests there are in one, which is a matter of speed.
const BACKGROUND: &str = "astrarium::background::";
/// Instructions that are executed less often are not looked up in their program.
const REPEATED_MIN: u64 = 64;

/// A profile of one process.
#[derive(Debug, Default)]
pub(crate) struct Profile {
    instructions: u64,
    system_calls: u64,
    allocations: u64,
    clock_reads: u64,
    moved_bytes: u64,
}

/// Names that were written once with a number, and by the number from then on.
#[derive(Default)]
struct Names(HashMap<u64, String>);

impl Names {
    /// The name of `(12) name` or `(12)`.
    fn resolve(&mut self, text: &str) -> Option<String> {
        let (number, name) = text.strip_prefix('(')?.split_once(')')?;
        let number = number.parse().ok()?;
        let name = name.trim();
        if name.is_empty() {
            return self.0.get(&number).cloned();
        }
        self.0.insert(number, name.to_owned());
        Some(name.to_owned())
    }
}

impl Profile {
    pub(crate) fn read(path: &Path) -> anyhow::Result<Profile> {
        let text = std::fs::read_to_string(path).with_context(|| format!("read {}", path.display()))?;
        Profile::parse(&text, &mut Programs::default())
    }

    fn parse(text: &str, programs: &mut Programs) -> anyhow::Result<Profile> {
        let mut profile = Profile::default();
        let (mut functions, mut objects) = (Names::default(), Names::default());
        let (mut function, mut called, mut object) = (String::new(), String::new(), String::new());
        let (mut is_call, mut is_background) = (false, false);
        let mut background = 0;
        let mut repeated: HashMap<(String, u64), u64> = HashMap::new();
        for line in text.lines() {
            if let Some(name) = line.strip_prefix("fn=") {
                function = functions.resolve(name).context("a function without a name")?;
            } else if let Some(name) = line.strip_prefix("cfn=") {
                called = functions.resolve(name).context("a called function without a name")?;
            } else if let Some(name) = line.strip_prefix("ob=") {
                object = objects.resolve(name).context("a program without a name")?;
            } else if let Some(name) = line.strip_prefix("cob=") {
                objects.resolve(name).context("a called program without a name")?;
            } else if let Some(rest) = line.strip_prefix("calls=") {
                is_call = true;
                is_background = called.starts_with(BACKGROUND) && !function.starts_with(BACKGROUND);
                let count = rest.split(' ').next().and_then(|count| count.parse().ok());
                profile.add_calls(&function, &called, count.context("calls without a number")?);
            } else if let Some(address) = line.strip_prefix("0x") {
                let mut fields = address.split(' ');
                if std::mem::take(&mut is_call) {
                    let inclusive = fields.nth(2).and_then(|count| count.parse::<u64>().ok());
                    background += inclusive.filter(|_| is_background).unwrap_or(0);
                    continue;
                }
                let place = fields.next().and_then(|place| u64::from_str_radix(place, 16).ok());
                let mut counts = fields.skip(1).map(|count| count.parse::<i64>().unwrap_or(0));
                let executed = u64::try_from(counts.next().unwrap_or(0)).unwrap_or(0);
                profile.instructions += executed;
                if executed >= REPEATED_MIN {
                    let place = (object.clone(), place.context("a cost without an address")?);
                    *repeated.entry(place).or_default() += executed;
                }
            } else if let Some(counts) = line.strip_prefix("summary:") {
                let calls = counts.split_whitespace().nth(1).and_then(|calls| calls.parse::<i64>().ok());
                // Calls that were under way when counting began are subtracted by callgrind.
                profile.system_calls = u64::try_from(calls.unwrap_or(0)).unwrap_or(0);
            }
        }
        profile.instructions = profile.instructions.saturating_sub(background);
        for ((object, place), executed) in repeated {
            if let Some(width) = programs.repeated_width(&object, place) {
                profile.instructions = profile.instructions.saturating_sub(executed);
                profile.moved_bytes += executed * width;
            }
        }
        Ok(profile)
    }

    fn add_calls(&mut self, function: &str, called: &str, count: u64) {
        // Versions of symbols stand behind an @, recursion behind an apostrophe.
        let bare = |name: &str| name.split(['@', '\'']).next().unwrap_or_default().to_owned();
        let called = bare(called);
        if ALLOCATING.contains(&called.as_str())
            && !function.starts_with("mi_")
            && !function.starts_with("_mi_")
        {
            self.allocations += count;
        }
        if called == CLOCK && bare(function) != CLOCK {
            self.clock_reads += count;
        }
    }

    pub(crate) fn counts(&self) -> Counts {
        Counts {
            instructions: self.instructions as f64,
            moved_bytes: self.moved_bytes as f64,
            allocations: self.allocations as f64,
            clock_reads: self.clock_reads as f64,
            // Reading the clock is no system call outside of valgrind.
            system_calls: self.system_calls.saturating_sub(self.clock_reads) as f64,
        }
    }
}

/// The bytes of programs and libraries, read when an instruction of theirs is looked up.
#[derive(Default)]
struct Programs(HashMap<String, Option<Program>>);

struct Program {
    bytes: Vec<u8>,
    /// Address, length and place in the file of each loaded part.
    segments: Vec<[u64; 3]>,
}

impl Programs {
    /// How many bytes a step of the instruction at an address moves, if it is a repeated string instruction.
    fn repeated_width(&mut self, object: &str, address: u64) -> Option<u64> {
        let program = self.0.entry(object.to_owned()).or_insert_with(|| Program::read(Path::new(object)));
        repeated_width(program.as_ref()?.at(address)?)
    }
}

impl Program {
    /// A 64-bit ELF file of a little-endian machine; nothing otherwise.
    fn read(path: &Path) -> Option<Program> {
        const LOADED: u32 = 1;
        let bytes = std::fs::read(path).ok()?;
        if bytes.get(..6)? != [0x7F, b'E', b'L', b'F', 2, 1] {
            return None;
        }
        let number = |at: usize, length: usize| {
            let mut raw = [0; 8];
            raw[..length].copy_from_slice(bytes.get(at..at + length)?);
            Some(u64::from_le_bytes(raw))
        };
        let (table, size, count) =
            (number(32, 8)? as usize, number(54, 2)? as usize, number(56, 2)? as usize);
        let headers = (0..count).map(|place| table + place * size);
        let segment = |at: usize| {
            let is_loaded = number(at, 4)? == u64::from(LOADED);
            is_loaded.then_some([number(at + 16, 8)?, number(at + 32, 8)?, number(at + 8, 8)?])
        };
        let segments = headers.filter_map(segment).collect();
        Some(Program { bytes, segments })
    }

    /// The bytes of an instruction.
    fn at(&self, address: u64) -> Option<&[u8]> {
        let [start, _, place] =
            *self.segments.iter().find(|[start, length, _]| (*start..start + length).contains(&address))?;
        let at = usize::try_from(address - start + place).ok()?;
        self.bytes.get(at..self.bytes.len().min(at + 4))
    }
}

/// The width of `rep movs` and `rep stos` on x86-64.
fn repeated_width(bytes: &[u8]) -> Option<u64> {
    match bytes {
        [0xF3, 0xA4 | 0xAA, ..] => Some(1),
        [0xF3, 0x48, 0xA5 | 0xAB, ..] => Some(8),
        [0xF3, 0xA5 | 0xAB, ..] => Some(4),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROFILE: &str = "\
events: Ir sysCount sysTime
summary: 130 9 70

ob=(1) nowhere
fl=(1) a.rs
fn=(1) handle
0x10 7 100
cfn=(2) mi_malloc_aligned
calls=3 0x40 0
0x14 8 24 0 0
cfn=(3) clock_gettime@@GLIBC_2.17
calls=2 0x50 0
0x18 9 4 2 10

fn=(2)
0x40 0 20
cfn=(4) mi_malloc
calls=3 0x60 0
0x44 0 6
fn=(3)
0x50 0 4 2 10
fn=(4)
0x60 0 6
";

    #[test]
    fn costs_of_calls_are_not_counted_twice_and_allocations_by_their_outermost_function() {
        let counts = Profile::parse(PROFILE, &mut Programs::default()).expect("a profile").counts();
        let expected = Counts {
            instructions: 130.0,
            moved_bytes: 0.0,
            allocations: 3.0,
            clock_reads: 2.0,
            system_calls: 7.0,
        };
        assert_eq!(counts, expected);
    }

    #[test]
    fn work_in_the_background_is_no_request_s() {
        let text = "fn=(1) poll\n0x10 7 100\ncfn=(2) astrarium::background::supervise\ncalls=1 0x40 0\n0x14 8 30 0 0\n\n\
                    fn=(2)\n0x40 0 10\ncfn=(3) scan\ncalls=1 0x60 0\n0x44 0 20\nfn=(3)\n0x60 0 20\n";
        let counts = Profile::parse(text, &mut Programs::default()).expect("a profile").counts();
        assert_eq!(counts, Counts { instructions: 100.0, ..Counts::default() });
    }

    #[test]
    fn string_instructions_count_as_bytes() {
        // A library whose only part is at 0x1000 and begins with `rep movsq`.
        let program = Program { bytes: vec![0xF3, 0x48, 0xA5, 0xC3], segments: vec![[0x1000, 4, 0]] };
        let mut programs = Programs::default();
        programs.0.insert("library".to_owned(), Some(program));
        let text = "ob=(1) library\nfn=(1) copy\n0x1000 0 128\n0x1003 0 128\n";
        let counts = Profile::parse(text, &mut programs).expect("a profile").counts();
        assert_eq!((counts.instructions, counts.moved_bytes), (128.0, 1024.0));
    }

    #[test]
    fn this_program_can_be_read() {
        let own = Program::read(&std::env::current_exe().expect("a path"));
        if cfg!(all(target_os = "linux", target_pointer_width = "64")) {
            assert!(own.is_some_and(|program| !program.segments.is_empty()));
        }
    }
}
