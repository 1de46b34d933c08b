//! `cargo xtask`: what is done with agentd around its build. `dist` makes the packages of a release.

mod dist;
mod outcome;

use clap::Parser;

use outcome::Failure;

#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
enum Task {
    Dist(dist::Options),
}

fn main() -> Result<(), Failure> {
    match Task::parse() {
        Task::Dist(options) => dist::run(&options),
    }
}
