//! Checks every fuzzing law against mutated inputs for some seconds: CI's part of `fuzz/`.
//!
//! Needs neither libFuzzer nor its compiler; `fuzz/run` searches longer and deeper. See docs/testing.md.
#![expect(clippy::print_stdout, reason = "a program for people")]

mod mutate;
mod seeds;

use std::{
    env, fs,
    panic::{self, AssertUnwindSafe},
    path::{Path, PathBuf},
    process::ExitCode,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
        mpsc::{self, RecvTimeoutError},
    },
    thread,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use crate::mutate::{Random, mutated};

/// One law and the name of its fuzz target.
type Law = (&'static str, fn(&[u8]));

/// The time limit of an input: work has to be proportional to the input. Generous, since builds are unoptimised and
/// machines loaded.
const TIME_LIMIT: Duration = Duration::from_secs(20);

/// The number of inputs that are passed to a thread at once.
const AT_ONCE: usize = 64;

/// All laws.
fn laws() -> Vec<Law> {
    [
        agentd_protocol::fuzz::LAWS,
        agentd_ai::fuzz::LAWS,
        agentd_http::fuzz::LAWS,
        agentd_auth::fuzz::LAWS,
        agentd_config::fuzz::LAWS,
        agentd_store::fuzz::LAWS,
        agentd_export_html::fuzz::LAWS,
        agentd_images::fuzz::LAWS,
        agentd_policy::fuzz::LAWS,
        agentd_process::fuzz::LAWS,
        agentd_tools::fuzz::LAWS,
        agentd_agent::fuzz::LAWS,
        agentd_mcp::fuzz::LAWS,
    ]
    .concat()
}

const USAGE: &str = "\
fuzz_laws SECONDS [--seed N] [--target NAME]   each law for so long, on mutated inputs
fuzz_laws --executions N ...                   each law so often
          --corpus FOLDER                      begins with the inputs of FOLDER/NAME, too
          --max-bytes N                        no longer inputs
fuzz_laws --replay FILE --target NAME          one law on one input
fuzz_laws --write-seeds FOLDER                 the inputs that it begins with, a folder for each target";

struct Options {
    seconds: f64,
    executions: u64,
    corpus: Option<PathBuf>,
    max_bytes: usize,
    seed: u64,
    target: Option<String>,
    replay: Option<PathBuf>,
    write_seeds: Option<PathBuf>,
}

fn options() -> Result<Options, String> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let seed = u64::from(now.subsec_nanos());
    let mut options = Options {
        seconds: 0.0,
        executions: 0,
        corpus: None,
        max_bytes: usize::MAX,
        seed,
        target: None,
        replay: None,
        write_seeds: None,
    };
    let mut arguments = env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or_else(|| format!("{argument} needs a value"));
        match argument.as_str() {
            "--seed" => options.seed = value()?.parse().map_err(|error| format!("--seed: {error}"))?,
            "--executions" => {
                options.executions = value()?.parse().map_err(|error| format!("--executions: {error}"))?;
            }
            "--max-bytes" => {
                options.max_bytes = value()?.parse().map_err(|error| format!("--max-bytes: {error}"))?;
            }
            "--corpus" => options.corpus = Some(value()?.into()),
            "--target" => options.target = Some(value()?),
            "--replay" => options.replay = Some(value()?.into()),
            "--write-seeds" => options.write_seeds = Some(value()?.into()),
            seconds => options.seconds = seconds.parse().map_err(|_| USAGE.to_owned())?,
        }
    }
    Ok(options)
}

fn main() -> ExitCode {
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(what) => {
            println!("{what}");
            ExitCode::from(2)
        }
    }
}

fn run() -> Result<bool, String> {
    let options = options()?;
    let mut laws = laws();
    if let Some(target) = &options.target {
        laws.retain(|(name, _)| name == target);
        if laws.is_empty() {
            return Err(format!("no target {target}"));
        }
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    if let Some(file) = &options.replay {
        let input = fs::read(file).map_err(|error| format!("{}: {error}", file.display()))?;
        let (name, law) = laws[0];
        if options.target.is_none() {
            return Err("--replay needs --target".to_owned());
        }
        law(&input);
        println!("{name}: {} keeps the law", file.display());
        return Ok(true);
    }
    if let Some(folder) = &options.write_seeds {
        for (name, _) in laws {
            seeds::write(&root, name, folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        }
        return Ok(true);
    }
    if options.seconds <= 0.0 && options.executions == 0 {
        return Err(USAGE.to_owned());
    }
    let each = match options.executions {
        0 => format!("{} s", options.seconds),
        count => format!("{count} executions"),
    };
    println!("seed {}, {each} for each of {} laws", options.seed, laws.len());
    Ok(hold_all(&root, &laws, &options))
}

/// Checks all laws, two at a time. Returns `false` if one is broken.
fn hold_all(root: &Path, laws: &[Law], options: &Options) -> bool {
    let next = AtomicUsize::new(0);
    let results = Mutex::new((0u64, 0usize));
    let threads = thread::available_parallelism().map_or(2, |count| count.get().min(4));
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(law) = laws.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let (count, broken) = hold(root, *law, options);
                    println!("{:24} {count:8} executions{}", law.0, if broken { "   BROKEN" } else { "" });
                    let mut results = results.lock().unwrap_or_else(PoisonError::into_inner);
                    results.0 += count;
                    results.1 += usize::from(broken);
                }
            });
        }
    });
    let (executions, broken) = *results.lock().unwrap_or_else(PoisonError::into_inner);
    println!(
        "{{\"run\":\"fuzz\",\"seed\":{},\"laws\":{},\"executions\":{executions},\"broken\":{broken}}}",
        options.seed,
        laws.len()
    );
    broken == 0
}

/// Checks one law on a thread that is abandoned if it does not return. Returns the number of executions, and `true` if the
/// law was broken.
fn hold(root: &Path, (name, law): Law, options: &Options) -> (u64, bool) {
    let mut seeds = seeds::of(root, name);
    if let Some(corpus) = &options.corpus {
        seeds.extend(seeds::files(&corpus.join(name), |_| true).into_iter().map(|(_, input)| input));
    }
    seeds.retain(|seed| seed.len() <= options.max_bytes);
    if seeds.is_empty() {
        seeds.push(Vec::new());
    }
    let words = seeds::words(root);
    let mut random = Random::new(options.seed ^ hash(name.as_bytes()));
    let (inputs, to_do) = mpsc::sync_channel::<Arc<[Vec<u8>]>>(1);
    let (done, results) = mpsc::sync_channel::<bool>(1);
    // The index of the current input.
    let at = Arc::new(AtomicUsize::new(0));
    let worker = thread::Builder::new().name(name.to_owned()).spawn({
        let at = Arc::clone(&at);
        move || {
            for inputs in to_do {
                let held = panic::catch_unwind(AssertUnwindSafe(|| {
                    for (index, input) in inputs.iter().enumerate() {
                        at.store(index, Ordering::Relaxed);
                        law(input);
                    }
                }));
                if done.send(held.is_ok()).is_err() {
                    return;
                }
            }
        }
    });
    if worker.is_err() {
        return (0, true);
    }
    let end = Instant::now() + Duration::from_secs_f64(options.seconds);
    let mut count = 0u64;
    // Each seed unchanged, then mutated.
    while count < seeds.len() as u64 || count < options.executions || Instant::now() < end {
        let next = |number: u64| {
            let whole = usize::try_from(number).ok().and_then(|at| seeds.get(at));
            whole.cloned().unwrap_or_else(|| {
                let seed = &seeds[random.below(seeds.len())];
                let mut input = mutated(seed, &seeds, &words, &mut random);
                input.truncate(options.max_bytes);
                input
            })
        };
        let handed: Arc<[Vec<u8>]> = (count..count + AT_ONCE as u64).map(next).collect();
        if inputs.send(Arc::clone(&handed)).is_err() {
            return (count, true);
        }
        let why = match results.recv_timeout(TIME_LIMIT) {
            Ok(true) => {
                count += AT_ONCE as u64;
                continue;
            }
            Ok(false) => "breaks the law",
            Err(RecvTimeoutError::Timeout) => "takes too long",
            Err(RecvTimeoutError::Disconnected) => "ends its thread",
        };
        let at = at.load(Ordering::Relaxed);
        tell(root, name, &handed[at], why);
        return (count + at as u64 + 1, true);
    }
    (count, false)
}

/// FNV-1a.
fn hash(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

/// Stores the input that broke a law, and prints how to repeat it.
fn tell(root: &Path, name: &str, input: &[u8], why: &str) {
    let folder = root.join("target/fuzz-found");
    let file = folder.join(format!("{name}-{:016x}", hash(input)));
    match fs::create_dir_all(&folder).and_then(|()| fs::write(&file, input)) {
        Ok(()) => println!(
            "{name}: an input of {} bytes {why}. Again with: fuzz/short --replay {} --target {name}",
            input.len(),
            file.display()
        ),
        Err(error) => println!("{name}: an input {why}, and cannot be kept ({error}): {input:?}"),
    }
}
