//! Looking up names, so that no connection is made to an address that is not allowed: what is looked at is what is connected to.

use std::{
    io,
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

use futures::future::BoxFuture;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use super::address::AllowedHosts;

/// Looks up a name.
pub(crate) trait Lookup: Send + Sync {
    /// The addresses of a name.
    fn addresses(&self, name: String) -> BoxFuture<'static, io::Result<Vec<IpAddr>>>;
}

/// As the system looks names up.
pub(crate) struct SystemLookup;

impl Lookup for SystemLookup {
    fn addresses(&self, name: String) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> {
        Box::pin(async move {
            let found = tokio::net::lookup_host((name, 0)).await?;
            Ok(found.map(|address| address.ip()).collect())
        })
    }
}

/// Every address of a name is one that may not be connected to. The name is not repeated: errors around it have it.
#[derive(Debug, thiserror::Error)]
#[error(
    "{name} leads to {address}, which is not a public address. If it is meant, the user can allow the host by the setting web.allowedHosts"
)]
pub(crate) struct PrivateAddress {
    pub(crate) name: String,
    pub(crate) address: IpAddr,
}

/// The resolver of the HTTP clients: leaves out the addresses that are not allowed.
pub(crate) struct GuardedResolver {
    pub(crate) lookup: Arc<dyn Lookup>,
    pub(crate) allowed: AllowedHosts,
    /// Names whose addresses all count: those of proxies, and hosts that the user allows by name.
    pub(crate) is_free: Arc<dyn Fn(&str) -> bool + Send + Sync>,
}

impl GuardedResolver {
    /// The allowed addresses of a name.
    ///
    /// # Errors
    /// [`PrivateAddress`] where none is left, and the system's.
    pub(crate) async fn look_up(
        lookup: &dyn Lookup,
        allowed: &AllowedHosts,
        name: &str,
    ) -> Result<Vec<IpAddr>, Box<dyn std::error::Error + Send + Sync>> {
        let found = lookup.addresses(name.to_owned()).await?;
        let permitted: Vec<IpAddr> =
            found.iter().copied().filter(|address| allowed.permits(*address)).collect();
        match (permitted.is_empty(), found.first()) {
            (true, Some(address)) => {
                Err(Box::new(PrivateAddress { name: name.to_owned(), address: *address }))
            }
            _ => Ok(permitted),
        }
    }
}

impl Resolve for GuardedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let (lookup, allowed) = (Arc::clone(&self.lookup), self.allowed.clone());
        let is_free = (self.is_free)(name.as_str());
        Box::pin(async move {
            let addresses = if is_free {
                lookup.addresses(name.as_str().to_owned()).await?
            } else {
                Self::look_up(&*lookup, &allowed, name.as_str()).await?
            };
            let addresses: Addrs = Box::new(addresses.into_iter().map(|address| SocketAddr::new(address, 0)));
            Ok(addresses)
        })
    }
}

#[cfg(test)]
pub(crate) mod testing {
    use super::*;

    /// A lookup that knows some names.
    pub(crate) struct FixedLookup(pub(crate) Vec<(&'static str, Vec<&'static str>)>);

    impl Lookup for FixedLookup {
        fn addresses(&self, name: String) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> {
            let found = self
                .0
                .iter()
                .find(|(known, _)| *known == name)
                .map(|(_, addresses)| addresses.iter().map(|address| address.parse().unwrap()).collect());
            Box::pin(
                async move { found.ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "no such name")) },
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use std::str::FromStr as _;

    use super::{testing::FixedLookup, *};

    fn resolver() -> GuardedResolver {
        GuardedResolver {
            lookup: Arc::new(FixedLookup(vec![
                ("rebound.example", vec!["127.0.0.1", "169.254.169.254"]),
                ("mixed.example", vec!["10.0.0.1", "93.184.216.34", "::1"]),
                ("proxy.corp", vec!["10.0.0.9"]),
                ("lab.example", vec!["10.1.2.3"]),
            ])),
            allowed: AllowedHosts::parse(&["10.1.0.0/16".to_owned()]).unwrap(),
            is_free: Arc::new(|name| name == "proxy.corp"),
        }
    }

    async fn resolved(name: &str) -> Result<Vec<String>, String> {
        match resolver().resolve(Name::from_str(name).unwrap()).await {
            Ok(addresses) => Ok(addresses.map(|address| address.ip().to_string()).collect()),
            Err(error) => Err(error.to_string()),
        }
    }

    #[tokio::test]
    async fn a_name_that_leads_to_this_machine_is_refused_where_it_is_looked_up() {
        let error = resolved("rebound.example").await.unwrap_err();
        assert!(
            error.contains("rebound.example leads to 127.0.0.1") && error.contains("web.allowedHosts"),
            "{error}"
        );
        assert_eq!(resolved("mixed.example").await, Ok(vec!["93.184.216.34".to_owned()]));
        assert_eq!(resolved("proxy.corp").await, Ok(vec!["10.0.0.9".to_owned()]));
        assert_eq!(resolved("lab.example").await, Ok(vec!["10.1.2.3".to_owned()]));
        assert_eq!(resolved("missing.example").await, Err("no such name".to_owned()));
    }
}
