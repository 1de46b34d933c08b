//! `cargo xtask record`: a terminal recording as one animated SVG image. The programs and their output are the real ones; the model is
//! scripted, and the typing is drawn.

mod frames;
mod ids;
mod recorder;
mod story;
mod svg;

use std::{
    env, fs,
    io::Write as _,
    path::{Path, PathBuf},
    process::Command,
};

use clap::Args;

use crate::outcome::{About as _, Outcome, fail};

/// Records agentctl in a terminal, and writes docs/images/prompt.svg.
///
/// The image holds its text, needs no script, and stands still where motion is not wanted. What is recorded is in
/// tests/xtask/src/record/story.rs.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// The folder of agentd and agentctl; without it they are built
    #[arg(long, value_name = "DIR")]
    bin_dir: Option<PathBuf>,
    /// Where the image goes [default: docs/images/prompt.svg]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// The size up to which an image is small enough for a page.
const MAX_BYTES: usize = 200_000;

/// Makes the recording.
pub(crate) fn run(options: &Options) -> Outcome<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let root = root.canonicalize().at(&root)?;
    let programs = match &options.bin_dir {
        Some(folder) => folder.canonicalize().at(folder)?,
        None => build(&root)?,
    };
    let out = options.out.clone().unwrap_or_else(|| root.join("docs/images/prompt.svg"));
    let frames = story::record(&programs)?;
    let image = svg::image(&frames);
    if image.len() > MAX_BYTES {
        return fail(format!(
            "the image has {} bytes, and may have {MAX_BYTES}: shorten the story",
            image.len()
        ));
    }
    fs::write(&out, &image).at(&out)?;
    let line = format!("{} bytes, {} frames: {}", image.len(), frames.len(), out.display());
    writeln!(std::io::stdout(), "{line}").about("stdout")
}

fn build(root: &Path) -> Outcome<PathBuf> {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command
        .args(["build", "--quiet", "--locked", "--package", "agentd", "--package", "agentctl"])
        .current_dir(root);
    let status = command.status().about("cargo build")?;
    if !status.success() {
        return fail(format!("cargo build: {status}"));
    }
    Ok(env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from).join("debug"))
}
