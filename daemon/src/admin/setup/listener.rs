//! Finds the process that listens on a port of this machine: it reads every conversation with its models.

use std::{
    fs,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    os::unix::fs::MetadataExt as _,
};

use agentd_protocol::doctor::Listener;

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

/// The listener at an address of this machine; `None` for other machines, and where the system does not tell. Blocks.
pub(super) fn listener(base_url: &str) -> Option<Listener> {
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
