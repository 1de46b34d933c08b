//! The address and the region of a request: Bedrock is a separate service in each region.

use agentd_http::sigv4;
use agentd_protocol::model::Model;
use reqwest::Url;

use crate::{
    Credentials, Request,
    failure::{Failure, FailureKind},
    http::endpoint,
};

/// The beginning of the service's host names.
const HOST: &str = "bedrock-runtime";

/// The address of a request. The region in an AWS address is replaced by the requested one; other addresses stay unchanged.
///
/// # Errors
/// Names what is wrong with the base URL.
pub(super) fn address(request: &Request) -> Result<Url, Failure> {
    let model = &*request.model;
    let path = format!("/model/{}/converse-stream", sigv4::encode(model.id.as_bytes()));
    let example = "https://bedrock-runtime.us-east-1.amazonaws.com";
    let mut url = endpoint(model, &path, example)?;
    if let (Some(host), Some(region)) = (AwsHost::of(&url), asked_region(model, &request.credentials))
        && host.region != region
    {
        if !is_region(region) {
            return Err(bad_region(region));
        }
        let host = host.in_region(region);
        url.set_host(Some(&host)).map_err(|_| bad_region(region))?;
    }
    Ok(url)
}

/// The region that a request to `url` is signed for.
///
/// # Errors
/// Explains how to name a region.
pub(super) fn region(request: &Request, url: &Url) -> Result<String, Failure> {
    let asked = asked_region(&request.model, &request.credentials).map(str::to_owned);
    let region = asked.or_else(|| AwsHost::of(url).map(|host| host.region.to_owned())).ok_or_else(|| {
        let message = format!(
            "The region of provider \"{}\" is not known, which requests to AWS are signed for. Set AWS_REGION in the \
             environment, or \"region\" in the profile in ~/.aws/config.",
            request.model.provider
        );
        Failure::new(FailureKind::Fatal, message)
    })?;
    if is_region(&region) { Ok(region) } else { Err(bad_region(&region)) }
}

/// The region in the model's ARN, else the account's.
fn asked_region<'a>(model: &'a Model, credentials: &'a Credentials) -> Option<&'a str> {
    let of_account = credentials.account.region.as_deref().filter(|region| !region.is_empty());
    of_arn(&model.id).or(of_account)
}

/// The region in `arn:aws:bedrock:REGION:account:…`.
fn of_arn(id: &str) -> Option<&str> {
    let mut parts = id.split(':');
    let is_ours = parts.next()? == "arn" && parts.next()?.starts_with("aws") && parts.next()? == "bedrock";
    parts.next().filter(|region| is_ours && is_region(region))
}

/// Whether a text is a legal region name, as it becomes a part of an address.
fn is_region(text: &str) -> bool {
    let legal = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    !text.is_empty() && text.len() <= 32 && text.bytes().all(legal)
}

fn bad_region(region: &str) -> Failure {
    let message = format!(
        "\"{region}\" is no region of AWS. Regions look like us-east-1: check AWS_REGION, AWS_DEFAULT_REGION and the profile in \
         ~/.aws/config."
    );
    Failure::new(FailureKind::Fatal, message)
}

/// A host of the service: `bedrock-runtime.REGION.amazonaws.com`, with an optional `-fips` after the first part and an optional `.cn` at
/// the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct AwsHost<'a> {
    service: &'a str,
    region: &'a str,
}

impl<'a> AwsHost<'a> {
    fn of(url: &'a Url) -> Option<Self> {
        let host = url.host_str()?;
        let host = host.strip_suffix(".cn").unwrap_or(host);
        let (service, region) = host.strip_suffix(".amazonaws.com")?.split_once('.')?;
        let is_ours = service == HOST || service.strip_prefix(HOST) == Some("-fips");
        (is_ours && is_region(region)).then_some(Self { service, region })
    }

    fn in_region(self, region: &str) -> String {
        let end = if region.starts_with("cn-") { ".cn" } else { "" };
        format!("{}.{region}.amazonaws.com{end}", self.service)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn place(id: &str, base_url: &str, region: Option<&str>) -> (String, Result<String, String>) {
        let model = Model {
            id: id.into(),
            base_url: base_url.into(),
            provider: "amazon-bedrock".into(),
            ..Model::placeholder()
        };
        let mut request = Request::new(Arc::new(model), Vec::new());
        request.credentials.account.region = region.map(str::to_owned);
        let url = match address(&request) {
            Ok(url) => url,
            Err(error) => return (error.message.clone(), Err(error.message)),
        };
        let region = super::region(&request, &url).map_err(|failure| failure.message);
        (url.into(), region)
    }

    fn check(id: &str, base_url: &str, region: Option<&str>, url: &str, signed: &str) {
        let expected = (url.to_owned(), Ok(signed.to_owned()));
        assert_eq!(place(id, base_url, region), expected, "{id} {base_url} {region:?}");
    }

    #[test]
    fn addresses_and_regions() {
        let aws = "https://bedrock-runtime.us-east-1.amazonaws.com";
        let at = |region: &str, id: &str| {
            format!("https://bedrock-runtime.{region}.amazonaws.com/model/{id}/converse-stream")
        };
        check("a.b-v1:0", aws, None, &at("us-east-1", "a.b-v1%3A0"), "us-east-1");
        check("m", aws, Some("eu-west-3"), &at("eu-west-3", "m"), "eu-west-3");
        check(
            "m",
            "https://bedrock-runtime-fips.us-east-1.amazonaws.com/",
            Some("us-gov-west-1"),
            "https://bedrock-runtime-fips.us-gov-west-1.amazonaws.com/model/m/converse-stream",
            "us-gov-west-1",
        );
        check(
            "m",
            aws,
            Some("cn-north-1"),
            "https://bedrock-runtime.cn-north-1.amazonaws.com.cn/model/m/converse-stream",
            "cn-north-1",
        );
        let arn = "arn:aws:bedrock:eu-west-1:123:inference-profile/eu.x-v1:0";
        check(
            arn,
            aws,
            Some("us-west-2"),
            &at("eu-west-1", "arn%3Aaws%3Abedrock%3Aeu-west-1%3A123%3Ainference-profile%2Feu.x-v1%3A0"),
            "eu-west-1",
        );
        // The address of a gateway stays unchanged.
        let gateway = "http://127.0.0.1:4010/bedrock/";
        check(
            "m",
            gateway,
            Some("eu-west-3"),
            "http://127.0.0.1:4010/bedrock/model/m/converse-stream",
            "eu-west-3",
        );
    }

    #[test]
    fn what_is_missing_is_named() {
        let (_, region) = place("m", "http://127.0.0.1:1/", None);
        assert!(region.unwrap_err().contains("Set AWS_REGION"));
        let aws = "https://bedrock-runtime.us-east-1.amazonaws.com";
        for odd in ["evil.example.com/", "a b", "US"] {
            let (url, region) = place("m", aws, Some(odd));
            assert!(!url.contains("example.com/model"), "{url}");
            let error = region.unwrap_err();
            assert!(error.contains("is no region of AWS"), "{odd}: {error}");
        }
        let (url, _) = place("m", "", None);
        assert!(url.contains("baseUrl of provider \"amazon-bedrock\" is missing"), "{url}");
    }
}
