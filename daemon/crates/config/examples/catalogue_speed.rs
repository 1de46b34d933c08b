//! Measures what the first look at the model catalogue costs: `cargo run --release -p agentd-config --example
//! catalogue_speed`. Memory is the growth of the process's resident set (Linux).

use std::{error::Error, fs, io::Write, time::Instant};

use agentd_config::models::ModelRegistry;

fn resident_kilobytes() -> Result<i64, Box<dyn Error>> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).ok_or("no VmRSS")?;
    Ok(line.trim().trim_end_matches(" kB").parse()?)
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut out = std::io::stdout().lock();
    let registry = ModelRegistry::builtin();
    for provider in ["openai", "openrouter", ""] {
        let wanted = |id: &str| provider.is_empty() || id == provider;
        let (memory, start) = (resident_kilobytes()?, Instant::now());
        let models = registry.select(&wanted).count();
        let time = start.elapsed();
        let name = if provider.is_empty() { "all providers" } else { provider };
        writeln!(out, "{name}: {models} models, {time:?}, {} kB", resident_kilobytes()? - memory)?;
    }
    drop(registry);
    writeln!(out, "after letting go: {} kB resident", resident_kilobytes()?)?;
    Ok(())
}
