//! Packs the files of the Node host into one, compressed: a list of names and lengths, then the contents.

use std::{
    env,
    error::Error,
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
};

/// The best compression that there is: it costs nothing at run time.
const LEVEL: u8 = 10;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = Path::new("node_host/dist");
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed={}", folder.display());
    let mut files =
        fs::read_dir(folder)?.map(|entry| entry.map(|entry| entry.path())).collect::<Result<Vec<_>, _>>()?;
    files.retain(|path| path.is_file());
    files.sort();
    let (mut code, mut contents) = (String::from("const FILES: &[(&str, usize)] = &["), Vec::new());
    for path in &files {
        let content = fs::read(path)?;
        let name = path.file_name().and_then(|name| name.to_str()).ok_or("a file without a name")?;
        write!(code, "({name:?}, {}), ", content.len())?;
        contents.extend(content);
    }
    code.push_str("];\n");
    let out = PathBuf::from(env::var("OUT_DIR")?);
    fs::write(out.join("node_host.rs"), code)?;
    fs::write(out.join("node_host.bin"), miniz_oxide::deflate::compress_to_vec(&contents, LEVEL))?;
    Ok(())
}
