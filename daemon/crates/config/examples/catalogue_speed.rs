//! Measures what the first look at the model catalogue costs, at the built-in one and at one that an update stored: `cargo
//! run --release -p agentd-config --example catalogue_speed`. Memory is the growth of the process's resident set (Linux).

use std::{env, error::Error, fs, io::Write, process::Command, time::Instant};

use agentd_config::{
    AgentDir,
    models::{ModelRegistry, update_catalogue},
};

fn resident_kilobytes() -> Result<i64, Box<dyn Error>> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).ok_or("no VmRSS")?;
    Ok(line.trim().trim_end_matches(" kB").parse()?)
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut out = std::io::stdout().lock();
    // Each in a process of its own: memory that the first gave back would be there for the second.
    if let Some(folder) = env::args().nth(1) {
        return measure(&mut out, &AgentDir::at(folder));
    }
    let folder = env::temp_dir().join(format!("catalogue-speed-{}", std::process::id()));
    let (plain, updated) = (folder.join("plain"), AgentDir::at(folder.join("updated")));
    let start = Instant::now();
    let text = document()?;
    update_catalogue(&updated, &text, &|_| true)?;
    let bytes = fs::metadata(updated.catalogue_file())?.len();
    writeln!(out, "update from {} bytes: {:?}, {bytes} bytes stored", text.len(), start.elapsed())?;
    for (name, agent_dir) in [("built-in", plain.as_path()), ("updated", updated.path())] {
        writeln!(out, "{name}:")?;
        out.flush()?;
        let status = Command::new(env::current_exe()?).arg(agent_dir).status()?;
        if !status.success() {
            return Err(status.to_string().into());
        }
    }
    fs::remove_dir_all(folder)?;
    Ok(())
}

/// The built-in catalogue, as a file for an update.
fn document() -> Result<String, Box<dyn Error>> {
    let registry = ModelRegistry::builtin();
    let models: Vec<_> = registry.select(&|_| true).map(|model| &**model).collect();
    Ok(serde_json::json!({ "defaults": {}, "models": models }).to_string())
}

fn measure(out: &mut impl Write, agent_dir: &AgentDir) -> Result<(), Box<dyn Error>> {
    let (memory, start) = (resident_kilobytes()?, Instant::now());
    let registry = ModelRegistry::of_agent_dir(agent_dir);
    let time = start.elapsed();
    writeln!(out, "  opened: {time:?}, {} kB", resident_kilobytes()? - memory)?;
    for provider in ["openai", "openrouter", ""] {
        let wanted = |id: &str| provider.is_empty() || id == provider;
        let (memory, start) = (resident_kilobytes()?, Instant::now());
        let models = registry.select(&wanted).count();
        let time = start.elapsed();
        let name = if provider.is_empty() { "all providers" } else { provider };
        writeln!(out, "  {name}: {models} models, {time:?}, {} kB", resident_kilobytes()? - memory)?;
    }
    drop(registry);
    writeln!(out, "  after letting go: {} kB resident", resident_kilobytes()?)?;
    Ok(())
}
