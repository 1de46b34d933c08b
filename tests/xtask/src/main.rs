//! `cargo xtask`: what is done with agentd around its build. `dist` makes the packages of a release, `record` the
//! terminal recording of the README.

mod dist;
mod outcome;
mod record;

use clap::Parser;

use outcome::Failure;

#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
enum Task {
    Dist(dist::Options),
    Record(record::Options),
}

fn main() -> Result<(), Failure> {
    match Task::parse() {
        Task::Dist(options) => dist::run(&options),
        Task::Record(options) => record::run(&options),
    }
}
