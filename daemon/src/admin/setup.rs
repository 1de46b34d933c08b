//! `setup_local`: writes the model servers of this machine into `models.json`.

mod plan;

use std::{
    fs,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    os::unix::fs::MetadataExt as _,
};

use agentd_ai::local_servers::{self, DEFAULT_PORTS, LocalServer, ProbeError};
use agentd_config::{ModelsEditError, NoAgentDir, WriteMode, edit_models};
use agentd_protocol::{
    doctor::{Listener, LocalProvider, LocalSetup, SetupChange, SetupLocalParams},
    error::{ErrorCode, Failure},
};

use self::plan::{ProviderFacts, SetupRequest, plan};
use super::Context;

/// Asks the servers for their models, and writes a provider for each into `models.json`, or only new models into a provider that is
/// there already.
///
/// # Errors
/// When no server is found, and when the file cannot be used or written; it is unchanged then.
///
/// Cancel safety: the file is written whole or not at all.
pub(crate) async fn local(context: Context, params: SetupLocalParams) -> Result<LocalSetup, Failure> {
    let request = SetupRequest { provider: params.provider, model: params.model };
    request.check()?;
    let servers = servers(params.base_url.as_deref(), &request).await?;
    let writing = if params.dry_run == Some(true) { WriteMode::DryRun } else { WriteMode::Yes };
    let others = params.dry_run == Some(true) || params.other_user == Some(true);
    let work = move || write(&context, &servers, &request, (writing, others));
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| Failure::new(ErrorCode::Internal, error.to_string()))?
}

/// The servers that have a chat model.
async fn servers(base_url: Option<&str>, request: &SetupRequest) -> Result<Vec<LocalServer>, Failure> {
    let Some(base_url) = base_url else {
        let mut found = local_servers::probe().await;
        found.iter_mut().for_each(|server| server.models.retain(|model| !model.is_embedding()));
        found.retain(|server| !server.models.is_empty());
        if let Some(model) = &request.model {
            found.retain(|server| server.models.iter().any(|served| served.id == *model));
        }
        return if found.is_empty() { Err(none_found(request)) } else { Ok(found) };
    };
    let mut server = local_servers::probe_url(base_url).await.map_err(|error| refused(&error))?;
    server.models.retain(|model| !model.is_embedding());
    if server.models.is_empty() {
        let text = format!("The server at {} lists no model to talk to.", server.base_url);
        return Err(
            Failure::new(ErrorCode::NotFound, text).hint("Load a model in the server, and try again.")
        );
    }
    Ok(vec![server])
}

fn none_found(request: &SetupRequest) -> Failure {
    let what = request.model.as_ref().map_or_else(String::new, |model| format!(" with the model {model}"));
    let text = format!("No model server{what} answers on the usual ports of this machine ({}).", ports());
    Failure::new(ErrorCode::NotFound, text)
        .hint("Start the server and load a model, or name it: agentctl setup local --url http://HOST:PORT/v1")
}

/// The default ports, in the order in which they are listed.
pub(crate) fn ports() -> String {
    DEFAULT_PORTS.iter().map(|(port, name)| format!("{port} {name}")).collect::<Vec<_>>().join(", ")
}

fn refused(error: &ProbeError) -> Failure {
    let (code, hint) = match error {
        ProbeError::Address { .. } => (ErrorCode::InvalidField, None),
        ProbeError::NeedsKey { .. } => (
            ErrorCode::NoCredentials,
            Some(
                "Only servers without a key are set up this way: write the provider into models.json yourself.",
            ),
        ),
        ProbeError::Unreachable { .. } | ProbeError::Silent { .. } => {
            (ErrorCode::NotFound, Some("Is the server running, and is this its address and port?"))
        }
        ProbeError::NotAListing { .. } => (
            ErrorCode::NotFound,
            Some("Give the address under which the server has its OpenAI-compatible API, often .../v1."),
        ),
    };
    // The error begins with an address, so a sentence precedes it.
    let failure = Failure::new(code, format!("No model server was set up: {error}."));
    match hint {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}

fn write(
    context: &Context,
    servers: &[LocalServer],
    request: &SetupRequest,
    (writing, others): (WriteMode, bool),
) -> Result<LocalSetup, Failure> {
    let no_dir = |error: NoAgentDir| Failure::new(ErrorCode::Io, error.to_string());
    let agent_dir = context.agent_dir().map_err(no_dir)?;
    let file = agent_dir.models_file();
    let (registry, auth) = context.load().map_err(no_dir)?;
    let facts = ProviderFacts {
        is_known: &|id| registry.provider(id).is_some(),
        has_key: &|id| auth.is_configured(id),
    };
    let edited = edit_models(&agent_dir, writing, |models| {
        let (changes, mut providers) = plan(models, servers, request, &facts).map_err(SetupError::Plan)?;
        for provider in &mut providers {
            provider.listener = listener(&provider.base_url);
        }
        match providers.iter().find(|provider| !others && is_new_of_other(provider)) {
            Some(provider) => Err(SetupError::Plan(of_other(provider))),
            None => Ok((changes, providers)),
        }
    });
    let (written, providers) = edited.map_err(Failure::from)?;
    Ok(LocalSetup { file: file.display().to_string(), written, providers })
}

/// Whether another user would read the conversations with a provider that was not configured before.
fn is_new_of_other(provider: &LocalProvider) -> bool {
    provider.change != SetupChange::Unchanged
        && provider.listener.as_ref().is_some_and(|listener| listener.is_other_user)
}

fn of_other(provider: &LocalProvider) -> Failure {
    let Some(Listener { user_id, user, .. }) = &provider.listener else {
        return Failure::new(ErrorCode::Internal, "a server of nobody");
    };
    let user =
        user.as_ref().map_or_else(|| format!("user {user_id}"), |name| format!("{name} (user {user_id})"));
    let text = format!(
        "The server at {} belongs to another user of this machine, {user}, who would read every conversation with its \
         models. Nothing was written.",
        provider.base_url
    );
    Failure::new(ErrorCode::Forbidden, text)
        .hint("If that is as it should be (a system service, say): agentctl setup local --other-user")
}

/// Why the set-up failed.
enum SetupError {
    Edit(ModelsEditError),
    Plan(Failure),
}

impl From<ModelsEditError> for SetupError {
    fn from(error: ModelsEditError) -> Self {
        Self::Edit(error)
    }
}

impl From<SetupError> for Failure {
    fn from(error: SetupError) -> Self {
        match error {
            SetupError::Plan(failure) => failure,
            SetupError::Edit(error @ ModelsEditError::Io { .. }) => {
                Self::new(ErrorCode::Io, error.to_string())
            }
            SetupError::Edit(error) => {
                Self::new(ErrorCode::Unsupported, error.to_string()).hint("Repair the file or remove it.")
            }
        }
    }
}

/// The tables of sockets; there are none on systems other than Linux.
const TABLES: [&str; 2] = ["/proc/net/tcp", "/proc/net/tcp6"];

/// The state of a socket that listens.
const LISTENS: &str = "0A";

/// A listening socket.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ListeningSocket {
    address: IpAddr,
    port: u16,
    user: u32,
    inode: u64,
}

/// The process that listens at an address of this machine, which reads every conversation with its models; `None` for other machines, and where the system does not tell. Blocks.
fn listener(base_url: &str) -> Option<Listener> {
    let (addresses, port) = local_addresses(base_url)?;
    let tables = TABLES.map(|table| fs::read_to_string(table).unwrap_or_default());
    let sockets: Vec<ListeningSocket> =
        tables.iter().flat_map(|table| table.lines()).filter_map(socket).collect();
    let own = rustix::process::getuid().as_raw();
    let found = addresses.iter().flat_map(|address| answering(&sockets, *address, port));
    // Of several listeners, one of another user is reported.
    let socket = found.max_by_key(|socket| is_other(socket.user, own))?;
    let process = (socket.user == own).then(|| process_of(socket.inode, own)).flatten();
    let (pid, program) = process.unzip();
    Some(Listener {
        user_id: socket.user,
        user: name_of(socket.user),
        is_other_user: is_other(socket.user, own),
        pid,
        program: program.flatten(),
    })
}

/// Whether a user is a stranger. Root is none: it can read everything anyway.
fn is_other(user: u32, own: u32) -> bool {
    user != own && user != 0
}

/// Pure. The addresses of this machine that a URL may mean, and its port.
fn local_addresses(base_url: &str) -> Option<(Vec<IpAddr>, u16)> {
    let (scheme, rest) = base_url.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, port.parse().ok()?),
        _ => (authority, if scheme == "https" { 443 } else { 80 }),
    };
    if host == "localhost" {
        return Some((vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()], port));
    }
    let address: IpAddr = host.trim_start_matches('[').trim_end_matches(']').parse().ok()?;
    address.is_loopback().then(|| (vec![address], port))
}

/// Pure. The sockets that a connection to the address may reach: those of that address, else those of all addresses.
fn answering(sockets: &[ListeningSocket], address: IpAddr, port: u16) -> Vec<&ListeningSocket> {
    let all = || sockets.iter().filter(move |socket| socket.port == port);
    let exact: Vec<&ListeningSocket> =
        all().filter(|socket| socket.address.to_canonical() == address).collect();
    if !exact.is_empty() {
        return exact;
    }
    // A socket of all IPv6 addresses usually accepts IPv4 connections, too.
    let of_version = |socket: &&ListeningSocket| socket.address.is_ipv6() || address.is_ipv4();
    all().filter(|socket| socket.address.to_canonical().is_unspecified()).filter(of_version).collect()
}

/// Pure. Reads a line of a table.
fn socket(line: &str) -> Option<ListeningSocket> {
    let fields: Vec<&str> = line.split_ascii_whitespace().collect();
    let (address, port) = fields.get(1)?.split_once(':')?;
    if *fields.get(3)? != LISTENS {
        return None;
    }
    Some(ListeningSocket {
        address: address_of(address)?,
        port: u16::from_str_radix(port, 16).ok()?,
        user: fields.get(7)?.parse().ok()?,
        inode: fields.get(9)?.parse().ok()?,
    })
}

/// Pure. Reads an address: words of 32 bits, each in the byte order of the machine.
fn address_of(digits: &str) -> Option<IpAddr> {
    let word =
        |at: usize| u32::from_str_radix(digits.get(at * 8..at * 8 + 8)?, 16).ok().map(u32::to_ne_bytes);
    match digits.len() {
        8 => Some(Ipv4Addr::from(word(0)?).into()),
        32 => {
            let words = [word(0)?, word(1)?, word(2)?, word(3)?].concat();
            Some(Ipv6Addr::from(<[u8; 16]>::try_from(words).ok()?).into())
        }
        _ => None,
    }
}

fn name_of(user: u32) -> Option<String> {
    let users = fs::read_to_string("/etc/passwd").ok()?;
    users.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)?.parse() == Ok(user)).then(|| name.to_owned())
    })
}

/// The process of this user that has a socket, and its name.
fn process_of(inode: u64, own: u32) -> Option<(u32, Option<String>)> {
    let socket = format!("socket:[{inode}]");
    fs::read_dir("/proc").ok()?.flatten().find_map(|entry| {
        let pid = entry.file_name().to_str()?.parse().ok()?;
        if entry.metadata().ok()?.uid() != own {
            return None;
        }
        let mut open = fs::read_dir(entry.path().join("fd")).ok()?.flatten();
        open.find(|fd| fs::read_link(fd.path()).is_ok_and(|link| link.as_os_str() == &*socket))?;
        let name = fs::read_to_string(entry.path().join("comm")).ok();
        Some((pid, name.map(|name| name.trim_end().to_owned())))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "\
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 111 1 0 100 0 0 10 0
   1: 00000000:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     7        0 112 1 0 100 0 0 10 0
   2: 0100007F:1F90 0100007F:AB12 01 00000000:00000000 00:00000000 00000000     8        0 113 1 0 100 0 0 10 0
   3: 00000000000000000000000001000000:1F91 00000000000000000000000000000000:0000 0A 0:0 00:0 0 9 0 114 1
   4: 00000000000000000000000000000000:1F92 00000000000000000000000000000000:0000 0A 0:0 00:0 0 10 0 115 1
";

    #[cfg(target_endian = "little")]
    #[test]
    fn the_socket_that_answers_is_found() {
        let sockets: Vec<ListeningSocket> = TABLE.lines().filter_map(socket).collect();
        assert_eq!(sockets.len(), 4);
        let users = |url: &str| {
            let (addresses, port) = local_addresses(url).unwrap();
            let all = addresses.iter().flat_map(|address| answering(&sockets, *address, port));
            all.map(|socket| socket.user).collect::<Vec<_>>()
        };
        assert_eq!(users("http://127.0.0.1:8080/v1"), [1000]);
        assert_eq!(users("http://127.0.0.2:8080/v1"), [7]);
        assert_eq!(users("http://[::1]:8081"), [9]);
        assert_eq!(users("http://localhost:8081/v1"), [9]);
        assert_eq!(users("http://127.0.0.1:8081/v1"), [0; 0]);
        assert_eq!(users("http://127.0.0.1:8082/v1"), [10]);
        assert_eq!(users("http://[::1]:8082/v1"), [10]);
        assert_eq!(local_addresses("http://127.0.0.1/v1").unwrap().1, 80);
        assert_eq!(
            (local_addresses("http://192.168.1.7:8080/v1"), local_addresses("http://example.com:8080")),
            (None, None)
        );
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn this_process_is_found_by_its_port() {
        let socket = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let url = format!("http://{}/v1", socket.local_addr().unwrap());
        let found = listener(&url).unwrap();
        assert_eq!(found.user_id, rustix::process::getuid().as_raw());
        assert_eq!((found.is_other_user, found.pid), (false, Some(std::process::id())));
        drop(socket);
        assert_eq!(listener(&url), None);
    }
}
