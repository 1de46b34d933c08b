//! Has the linker put the functions that a start calls side by side. Spread over the program, they would have the system read, and count as memory
//! of each agentd, half of it.

use std::{
    env,
    io::{self, Write},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

fn main() -> io::Result<()> {
    let script = Path::new(&variable("CARGO_MANIFEST_DIR")).join("start_functions.ld");
    let mut out = io::stdout().lock();
    writeln!(out, "cargo:rerun-if-changed={}\ncargo:rerun-if-changed=build.rs", script.display())?;
    // The memory of a build for tests does not matter, and its linking takes seconds more.
    if variable("PROFILE") != "release" || variable("CARGO_CFG_TARGET_OS") != "linux" {
        return Ok(());
    }
    if is_taken_by_the_linker(&script)? {
        for arg in ["-T".as_ref(), script.as_os_str()] {
            writeln!(out, "cargo:rustc-link-arg-bin=agentd={}", arg.display())?;
        }
    } else {
        writeln!(
            out,
            "cargo:warning=the linker does not take {}: agentd works, and takes more memory",
            script.display()
        )?;
    }
    Ok(())
}

/// Links a program that does nothing by the same linker. Not every linker knows such scripts.
fn is_taken_by_the_linker(script: &Path) -> io::Result<bool> {
    let mut rustc = Command::new(variable("RUSTC"));
    rustc.args(["--crate-name", "probe", "--crate-type", "bin", "--target", &variable("TARGET"), "-"]);
    rustc.arg("-o").arg(PathBuf::from(variable("OUT_DIR")).join("probe"));
    if let Some(linker) = env::var_os("RUSTC_LINKER") {
        let mut flag = std::ffi::OsString::from("linker=");
        flag.push(linker);
        rustc.arg("-C").arg(flag);
    }
    rustc.args(variable("CARGO_ENCODED_RUSTFLAGS").split('\x1f').filter(|flag| !flag.is_empty()));
    let mut flag = std::ffi::OsString::from("link-arg=");
    flag.push(script);
    rustc.args(["-C", "link-arg=-T", "-C"]).arg(flag);
    rustc.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut linking = rustc.spawn()?;
    if let Some(mut source) = linking.stdin.take() {
        source.write_all(b"fn main() {}")?;
    }
    Ok(linking.wait()?.success())
}

/// A variable that cargo sets; empty without it.
fn variable(name: &str) -> String {
    env::var(name).unwrap_or_default()
}
