//! Which addresses may be connected to: public ones, and what the setting `web.allowedHosts` adds. Pure.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use reqwest::Url;

/// IPv4 networks that are not public: first address, bits of the network.
const PRIVATE_V4: [([u8; 4], u32); 19] = [
    ([0, 0, 0, 0], 8),        // this network
    ([10, 0, 0, 0], 8),       // private
    ([100, 64, 0, 0], 10),    // carrier-grade NAT, and metadata of some clouds
    ([127, 0, 0, 0], 8),      // loopback
    ([168, 63, 129, 16], 32), // a cloud's wire server
    ([169, 254, 0, 0], 16),   // link-local, and metadata of most clouds
    ([172, 16, 0, 0], 12),    // private
    ([192, 0, 0, 0], 24),     // protocol assignments
    ([192, 0, 2, 0], 24),     // documentation
    ([192, 31, 196, 0], 24),  // AS112
    ([192, 52, 193, 0], 24),  // AMT
    ([192, 88, 99, 0], 24),   // relays of 6to4
    ([192, 168, 0, 0], 16),   // private
    ([192, 175, 48, 0], 24),  // AS112
    ([198, 18, 0, 0], 15),    // benchmarks
    ([198, 51, 100, 0], 24),  // documentation
    ([203, 0, 113, 0], 24),   // documentation
    ([224, 0, 0, 0], 4),      // multicast
    ([240, 0, 0, 0], 4),      // reserved, broadcast
];

/// IPv6 networks within the public range that are not public.
const PRIVATE_V6: [(u128, u32); 5] = [
    (0x2001_0000 << 96, 23),      // protocol assignments, Teredo
    (0x2001_0db8 << 96, 32),      // documentation
    (0x2620_004f_8000 << 80, 48), // AS112
    (0x3fff << 112, 20),          // documentation
    (0x3ffe << 112, 16),          // the former test network
];

/// Whether an address is one of the public internet: not private, loopback, link-local, shared, reserved, multicast or of documentation, in
/// whatever form of IPv6 it is written.
#[must_use]
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let bits = u32::from(address);
    !PRIVATE_V4
        .iter()
        .any(|(network, length)| has(u32::from(Ipv4Addr::from(*network)).into(), bits.into(), length + 96))
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let bits = u128::from(address);
    let last = Ipv4Addr::from(bits as u32);
    // An address of IPv4 in one of IPv6, and what translators make of it.
    if address.to_ipv4_mapped().is_some() || has(0x0064_ff9b << 96, bits, 96) {
        return is_public_v4(last);
    }
    // 6to4 has the address of IPv4 behind its first bits.
    if has(0x2002 << 112, bits, 16) {
        return is_public_v4(Ipv4Addr::from((bits >> 80) as u32));
    }
    has(0x2000 << 112, bits, 3) && !PRIVATE_V6.iter().any(|(network, length)| has(*network, bits, *length))
}

/// Whether two addresses have their first bits in common.
fn has(network: u128, address: u128, length: u32) -> bool {
    length == 0 || (network ^ address).leading_zeros() >= length
}

/// Hosts that may be reached though they are not public.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AllowedHosts {
    names: Vec<(String, Option<u16>)>,
    networks: Vec<(IpAddr, u32)>,
}

impl AllowedHosts {
    /// Reads the setting `web.allowedHosts`: names (`wiki.corp.example`, `*.corp.example`), with a port or without, addresses, and networks
    /// such as `10.1.0.0/16`.
    ///
    /// # Errors
    /// Names the entry that is none of these.
    pub fn parse(entries: &[String]) -> Result<Self, String> {
        let mut allowed = Self::default();
        for entry in entries {
            let text = entry.trim();
            let wrong = || {
                format!(
                    "\"{entry}\" of the setting web.allowedHosts is no host: write a name, name:port, an address or a network such as 10.1.0.0/16"
                )
            };
            if let Some((address, length)) = text.split_once('/') {
                let address: IpAddr = address.parse().map_err(|_| wrong())?;
                let length: u32 = length.parse().map_err(|_| wrong())?;
                let most = if address.is_ipv4() { 32 } else { 128 };
                allowed
                    .networks
                    .push((address, Some(length).filter(|length| *length <= most).ok_or_else(wrong)?));
            } else if let Ok(address) = text.trim_matches(['[', ']']).parse::<IpAddr>() {
                allowed.networks.push((address, if address.is_ipv4() { 32 } else { 128 }));
            } else {
                let (name, port) = match text.rsplit_once(':') {
                    Some((name, port)) => (name, Some(port.parse::<u16>().map_err(|_| wrong())?)),
                    None => (text, None),
                };
                let name = name.trim_matches(['[', ']']).trim_end_matches('.').to_ascii_lowercase();
                let is_name =
                    |letter: char| letter.is_alphanumeric() || matches!(letter, '-' | '_' | '.' | ':');
                if name.is_empty() || !name.strip_prefix("*.").unwrap_or(&name).chars().all(is_name) {
                    return Err(wrong());
                }
                allowed.names.push((name, port));
            }
        }
        Ok(allowed)
    }

    /// Whether the host of a URL is allowed by its name, whatever that leads to.
    #[must_use]
    pub fn names(&self, url: &Url) -> bool {
        let Some(host) = url.host_str() else { return false };
        let host = host.trim_matches(['[', ']']).trim_end_matches('.');
        let port = url.port_or_known_default();
        self.names.iter().any(|(name, wanted)| {
            let is_it = match name.strip_prefix("*.") {
                Some(above) => host.strip_suffix(above).is_some_and(|rest| rest.ends_with('.')),
                None => host == name,
            };
            is_it && wanted.is_none_or(|wanted| Some(wanted) == port)
        })
    }

    /// Whether an address may be connected to: it is public, or in an allowed network.
    #[must_use]
    pub fn permits(&self, address: IpAddr) -> bool {
        let bits = |address: IpAddr| match address.to_canonical() {
            IpAddr::V4(address) => u128::from(address.to_ipv6_mapped()),
            IpAddr::V6(address) => u128::from(address),
        };
        is_public(address)
            || self.networks.iter().any(|(network, length)| {
                has(bits(*network), bits(address), if network.is_ipv4() { length + 96 } else { *length })
            })
    }
}

/// The address that stands in a URL in the place of a name.
pub(crate) fn literal(url: &Url) -> Option<IpAddr> {
    url.host_str()?.trim_matches(['[', ']']).parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_public_is_known_in_every_form() {
        for address in [
            "0.0.0.0",
            "0.1.2.3",
            "10.0.0.1",
            "100.64.0.1",
            "100.100.100.200",
            "127.0.0.1",
            "127.9.9.9",
            "169.254.169.254",
            "168.63.129.16",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.8",
            "192.168.1.1",
            "198.18.0.1",
            "198.19.255.255",
            "203.0.113.1",
            "224.0.0.1",
            "239.1.1.1",
            "255.255.255.255",
            "::",
            "::1",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "::127.0.0.1",
            "64:ff9b::10.0.0.1",
            "64:ff9b:1::1",
            "2002:7f00:1::",
            "2002:c0a8:101::1",
            "2001::1",
            "2001:db8::1",
            "fc00::1",
            "fd00:ec2::254",
            "fe80::1",
            "fec0::1",
            "ff02::1",
            "100::1",
            "3fff::1",
            "4000::1",
            "5f00::1",
        ] {
            assert!(!is_public(address.parse().unwrap()), "{address}");
        }
        for address in [
            "1.1.1.1",
            "8.8.8.8",
            "100.63.255.255",
            "100.128.0.1",
            "172.15.0.1",
            "172.32.0.1",
            "192.0.1.1",
            "198.20.0.1",
            "223.255.255.255",
            "2606:4700::1111",
            "2a00:1450::1",
            "::ffff:1.1.1.1",
            "64:ff9b::8.8.8.8",
            "2002:808:808::1",
        ] {
            assert!(is_public(address.parse().unwrap()), "{address}");
        }
    }

    #[test]
    fn hosts_are_allowed_by_name_port_address_and_network() {
        let list = ["localhost:3000", "*.corp.example", "wiki", "10.1.0.0/16", "127.0.0.1", "fd00::/8"];
        let allowed = AllowedHosts::parse(&list.map(str::to_owned)).unwrap();
        let names = |url: &str| allowed.names(&Url::parse(url).unwrap());
        assert!(names("http://localhost:3000/") && !names("http://localhost:3001/"));
        assert!(
            names("https://a.corp.example/")
                && names("https://a.b.corp.example./")
                && !names("https://corp.example/")
        );
        assert!(!names("https://xcorp.example/") && names("http://WIKI/"));
        let permits = |address: &str| allowed.permits(address.parse().unwrap());
        assert!(
            permits("10.1.255.1") && !permits("10.2.0.1") && permits("127.0.0.1") && !permits("127.0.0.2")
        );
        assert!(permits("::ffff:10.1.0.1") && permits("fd12::1") && permits("8.8.8.8") && !permits("::1"));
        for wrong in ["", "a b", "10.0.0.0/33", "x:port", "http://x"] {
            assert!(
                AllowedHosts::parse(&[wrong.to_owned()]).unwrap_err().contains("web.allowedHosts"),
                "{wrong}"
            );
        }
    }
}
