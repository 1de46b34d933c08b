# To be sourced, with $repository set: builds agentd, agentctl and agentd-syntax as a user builds them, and the programs that only tests need. Sets
# AGENTD_BIN_DIR to their folder, unless it names one already.
#
# What `cargo test --workspace` has built is found built: another choice of packages has its dependencies with other features, and builds most of
# them once more. For that an example is among the targets, as only then the dependencies of tests count.
if [ -z "${AGENTD_BIN_DIR-}" ]; then
  (cd "$repository" && cargo build --locked --quiet --workspace --bins --example search && cargo build --locked --quiet) || exit
  AGENTD_BIN_DIR=${CARGO_TARGET_DIR:-$repository/target}/debug
fi
AGENTD_BIN_DIR=$(cd "$AGENTD_BIN_DIR" && pwd) || exit
export AGENTD_BIN_DIR
