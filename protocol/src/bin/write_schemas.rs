//! Regenerates the files of the folder `schemas/`: `cargo run -p agentd-protocol --features schema --bin write_schemas`.

use std::{fs, io, path::Path};

fn main() -> io::Result<()> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../schemas");
    fs::create_dir_all(&folder)?;
    for (name, text) in agentd_protocol::schema::files() {
        fs::write(folder.join(name), text)?;
    }
    Ok(())
}
