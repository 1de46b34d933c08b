//! The columns of the command table, and the macro that makes the command types from its rows.

use crate::daemon::Role;

/// The columns of a command's row that decide who may send it, and when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CommandSpec {
    /// The `type` of its line.
    pub name: &'static str,
    /// The role that it needs. [`Role::Observe`]: an observer may send it too, so it changes nothing.
    pub role: Role,
    /// Which sessions a client may send it for that is itself a command of a session.
    pub peer_access: PeerAccess,
    /// Whether it begins work, which a daemon that is ending refuses.
    pub begins_work: bool,
}

impl CommandSpec {
    /// Whether it changes nothing: an observer may send it.
    #[must_use]
    pub fn is_read_only(&self) -> bool {
        self.role == Role::Observe
    }
}

/// Which sessions a command may be sent for by a client that is not the user but a command of a session: a program that a
/// tool or the user's `bash` has started, or one that such a program started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PeerAccess {
    /// Any: it concerns the connection alone, or its answer is limited to what the client may see.
    Always,
    /// The session that started the client, and those that this session's commands have opened.
    VisibleSession,
    /// Only sessions that commands of the same session have opened.
    OpenedSession,
    /// None: it is for the user alone.
    Never,
}

/// Makes [`Command`](super::Command) and one enum for each scope from the rows of the table. Each column is required, and
/// each dispatcher matches the enum of its scope without a fallback: a command without a column or an arm does not compile.
macro_rules! commands {
    ($(
        $(#[doc = $doc:literal])*
        $name:ident = $wire:literal : $params:ident => $result:ty
            | $scope:ident, $role:ident, $access:ident, $work:ident;
    )*) => {
        /// A command, with its parameters read and checked, by its scope: who executes it.
        #[derive(Debug, Clone, PartialEq)]
        pub enum Command {
            /// For the session that it names, or the connection's current one.
            Session(SessionCommand),
            /// For the connection: it continues with another session.
            Switch(SwitchCommand),
            /// For the connection: it provides tools for sessions.
            ClientTool(ClientToolCommand),
            /// About the user's set-up, without a session: models, credentials, stored outputs.
            Admin(AdminCommand),
            /// For the connection and the daemon behind it.
            Daemon(DaemonCommand),
        }

        /// The enum of each scope, by the name that the rows use.
        mod by_scope {
            pub(super) use super::{
                AdminCommand as Admin, ClientToolCommand as ClientTool, DaemonCommand as Daemon,
                SessionCommand as Session, SwitchCommand as Switch,
            };
        }

        // Only the schemas name the results; this checks each row's type in every build.
        $(const _: Option<$result> = None;)*

        impl Command {
            /// The names of all commands.
            pub const NAMES: &[&str] = &[$($wire),*];

            /// The columns of its row.
            #[must_use]
            pub fn spec(&self) -> &'static CommandSpec {
                match self {
                    Self::Session(command) => command.spec(),
                    Self::Switch(command) => command.spec(),
                    Self::ClientTool(command) => command.spec(),
                    Self::Admin(command) => command.spec(),
                    Self::Daemon(command) => command.spec(),
                }
            }

            /// The `type` of its line.
            #[must_use]
            pub fn name(&self) -> &'static str {
                self.spec().name
            }

            /// Reads the parameters of the command `name` from its whole line; `None` for an unknown name.
            ///
            /// # Errors
            /// Names the field that is missing or unusable, and what was expected.
            pub fn parse(name: &str, line: &str) -> Option<Result<Self, crate::frame::FieldError>> {
                match name {
                    $($wire => Some(
                        crate::frame::parse_params(line)
                            .map(|params| Self::$scope(by_scope::$scope::$name(params))),
                    ),)*
                    _ => None,
                }
            }

            /// The parameters as JSON.
            #[cfg(any(test, feature = "fuzzing"))]
            pub(crate) fn fields(&self) -> serde_json::Result<serde_json::Value> {
                match self {
                    $(Self::$scope(by_scope::$scope::$name(params)) => serde_json::to_value(params),)*
                }
            }

            #[cfg(feature = "schema")]
            pub(crate) fn schemas(
                generator: &mut schemars::SchemaGenerator,
            ) -> Vec<crate::schema::rows::CommandRow> {
                vec![$(crate::schema::rows::CommandRow {
                    name: $wire,
                    doc: concat!($($doc),*).trim(),
                    params: generator.subschema_for::<$params>(),
                    data: crate::schema::rows::data_schema::<$result>(generator),
                },)*]
            }
        }

        $crate::command::spec::sort_by_scope! {
            [] [] [] [] []
            $($scope {
                $(#[doc = $doc])*
                $name($params): $wire, $role, $access, $work
            })*
        }
    };
}

/// Collects the rows of each scope, in the order of the table, and makes an enum of each.
macro_rules! sort_by_scope {
    ([$($session:tt)*] $switch:tt $tool:tt $admin:tt $daemon:tt Session $row:tt $($rest:tt)*) => {
        $crate::command::spec::sort_by_scope! { [$($session)* $row] $switch $tool $admin $daemon $($rest)* }
    };
    ($session:tt [$($switch:tt)*] $tool:tt $admin:tt $daemon:tt Switch $row:tt $($rest:tt)*) => {
        $crate::command::spec::sort_by_scope! { $session [$($switch)* $row] $tool $admin $daemon $($rest)* }
    };
    ($session:tt $switch:tt [$($tool:tt)*] $admin:tt $daemon:tt ClientTool $row:tt $($rest:tt)*) => {
        $crate::command::spec::sort_by_scope! { $session $switch [$($tool)* $row] $admin $daemon $($rest)* }
    };
    ($session:tt $switch:tt $tool:tt [$($admin:tt)*] $daemon:tt Admin $row:tt $($rest:tt)*) => {
        $crate::command::spec::sort_by_scope! { $session $switch $tool [$($admin)* $row] $daemon $($rest)* }
    };
    ($session:tt $switch:tt $tool:tt $admin:tt [$($daemon:tt)*] Daemon $row:tt $($rest:tt)*) => {
        $crate::command::spec::sort_by_scope! { $session $switch $tool $admin [$($daemon)* $row] $($rest)* }
    };
    ([$($session:tt)*] [$($switch:tt)*] [$($tool:tt)*] [$($admin:tt)*] [$($daemon:tt)*]) => {
        $crate::command::spec::scope_enum! { "A command of a session." SessionCommand $($session)* }
        $crate::command::spec::scope_enum! { "A command that leaves one session for another." SwitchCommand $($switch)* }
        $crate::command::spec::scope_enum! { "A command about tools that the client provides." ClientToolCommand $($tool)* }
        $crate::command::spec::scope_enum! { "A command about the user's set-up." AdminCommand $($admin)* }
        $crate::command::spec::scope_enum! { "A command of the connection or the daemon." DaemonCommand $($daemon)* }
    };
}

/// Makes the enum of one scope.
macro_rules! scope_enum {
    ($about:literal $enum:ident $({
        $(#[doc = $doc:literal])*
        $name:ident($params:ident): $wire:literal, $role:ident, $access:ident, $work:ident
    })*) => {
        #[doc = $about]
        #[derive(Debug, Clone, PartialEq)]
        // The enum of some scopes is small.
        #[allow(clippy::large_enum_variant, reason = "commands are few at a time, and read once from their lines")]
        pub enum $enum {
            $($(#[doc = $doc])* $name($params),)*
        }

        impl $enum {
            /// The columns of its row.
            #[must_use]
            pub fn spec(&self) -> &'static CommandSpec {
                match self {
                    $(Self::$name(_) => &CommandSpec {
                        name: $wire,
                        role: $crate::daemon::Role::$role,
                        peer_access: PeerAccess::$access,
                        begins_work: $crate::command::spec::begins_work!($work),
                    },)*
                }
            }

            /// The `type` of its line.
            #[must_use]
            pub fn name(&self) -> &'static str {
                self.spec().name
            }
        }
    };
}

macro_rules! begins_work {
    (begins_work) => {
        true
    };
    (no_work) => {
        false
    };
}

pub(super) use commands;
pub(crate) use {begins_work, scope_enum, sort_by_scope};
