//! Which texts Kubernetes takes for an IP address or a network, and in which words it
//! refuses the others.
//!
//! Fields that are older than strict rules are read loosely first (leading zeros,
//! IPv4 inside IPv6), so that what is refused gets the reason. What an address is for,
//! this does not know, but for the ranges that no endpoint can be in.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::field_error::FieldError;
use crate::field_path::Path;

const IPV4_BITS: u32 = 32;
const IPV6_BITS: u32 = 128;

/// An IP address in any spelling that has one meaning. `known` are values of the stored
/// object, which are let through as they are.
pub(crate) fn validate_ip(
    value: &str,
    known: &BTreeSet<&str>,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    if known.contains(value) {
        return;
    }
    if let Some(detail) = wrong_with_ip(value) {
        errors.push(FieldError::invalid(path, value, detail));
    }
}

/// An IP address in the one spelling of RFC 5952.
pub(crate) fn validate_canonical_ip(value: &str, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    if let Some(detail) = wrong_with_ip(value) {
        errors.push(FieldError::invalid(path, value, detail));
        return;
    }
    let canonical = parse_loosely(value).expect("nothing is wrong with it").to_string();
    if canonical != value {
        let detail = format!("must be in canonical form (\"{canonical}\")");
        errors.push(FieldError::invalid(path, value, detail));
    }
}

/// A network such as `10.9.8.0/24`, with `known` values let through.
pub(crate) fn validate_cidr(
    value: &str,
    known: &BTreeSet<&str>,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    if known.contains(value) {
        return;
    }
    if let Some(detail) = wrong_with_cidr(value) {
        errors.push(FieldError::invalid(path, value, detail));
    }
}

/// An address that traffic can be sent to. Upstream uses the same words for external
/// addresses of Services.
pub(crate) fn validate_endpoint_ip(value: &str, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let Some(address) = parse_loosely(value) else {
        errors.push(FieldError::invalid(path, value, "must be a valid IP address"));
        return;
    };
    let address = address.to_canonical();
    if address.is_unspecified() {
        let detail = format!("may not be unspecified ({value})");
        errors.push(FieldError::invalid(path, value, detail));
    }
    if address.is_loopback() && !is_local_pod(address) {
        let detail = "may not be in the loopback range (127.0.0.0/8, ::1/128)";
        errors.push(FieldError::invalid(path, value, detail));
    }
    if is_link_local(address) {
        let detail = "may not be in the link-local range (169.254.0.0/16, fe80::/10)";
        errors.push(FieldError::invalid(path, value, detail));
    }
    if is_link_local_multicast(address) {
        let detail = "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)";
        errors.push(FieldError::invalid(path, value, detail));
    }
}

/// The addresses of Pods that run as processes of this machine: 127.64.0.0/10. Upstream has no
/// such Pods, and refuses them where traffic is to be sent to.
fn is_local_pod(address: IpAddr) -> bool {
    matches!(address, IpAddr::V4(address) if address.octets()[0] == 127 && address.octets()[1] & 0xc0 == 64)
}

/// Whether a text is an IPv4 address, or an IPv6 address that stands for one.
pub(crate) fn is_ipv4(value: &str) -> bool {
    parse_loosely(value).is_some_and(|address| address.to_canonical().is_ipv4())
}

/// Whether a text is an IPv6 address that does not stand for an IPv4 address.
pub(crate) fn is_ipv6(value: &str) -> bool {
    parse_loosely(value).is_some_and(|address| address.to_canonical().is_ipv6())
}

/// Whether a text is an address of either kind.
pub(crate) fn is_ip(value: &str) -> bool {
    parse_loosely(value).is_some()
}

/// Whether networks are at most one of each family, as far as they can be read.
pub(crate) fn is_dual_stack(networks: &[String]) -> bool {
    let family = |network: &String| parse_cidr_loosely(network).map(|(ip, _)| ip.is_ipv4());
    let families: Vec<bool> = networks.iter().filter_map(family).collect();
    families.contains(&true) && families.contains(&false)
}

fn wrong_with_ip(value: &str) -> Option<&'static str> {
    match (parse_loosely(value), value.parse::<IpAddr>()) {
        (None, _) => Some("must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"),
        (Some(_), Err(_)) => Some("must not have leading 0s"),
        (Some(_), Ok(address)) if is_mapped(address) => {
            Some("must not be an IPv4-mapped IPv6 address")
        }
        (Some(_), Ok(_)) => None,
    }
}

fn wrong_with_cidr(value: &str) -> Option<&'static str> {
    let Some((address, bits)) = parse_cidr_loosely(value) else {
        return Some("must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)");
    };
    let (ip, prefix) = value.split_once('/').expect("it was read as a network");
    let is_strict = ip.parse::<IpAddr>().is_ok() && prefix == bits.to_string();
    if !is_strict {
        Some("must not have leading 0s in IP or prefix length")
    } else if is_mapped(address) {
        Some("must not have an IPv4-mapped IPv6 address")
    } else if has_host_bits(address, bits) {
        Some("must not have bits set beyond the prefix length")
    } else {
        None
    }
}

fn parse_cidr_loosely(value: &str) -> Option<(IpAddr, u32)> {
    let (ip, prefix) = value.split_once('/')?;
    let address = parse_loosely(ip)?;
    let is_number = !prefix.is_empty() && prefix.bytes().all(|b| b.is_ascii_digit());
    let bits: u32 = if is_number { prefix.parse().ok()? } else { return None };
    let max_bits = if address.is_ipv4() { IPV4_BITS } else { IPV6_BITS };
    (bits <= max_bits).then_some((address, bits))
}

fn parse_loosely(value: &str) -> Option<IpAddr> {
    if !value.contains(':') {
        return parse_ipv4_loosely(value).map(IpAddr::V4);
    }
    let address = match value.rsplit_once(':') {
        Some((head, tail)) if tail.contains('.') => {
            format!("{head}:{}", parse_ipv4_loosely(tail)?).parse::<Ipv6Addr>().ok()
        }
        _ => value.parse::<Ipv6Addr>().ok(),
    };
    address.map(IpAddr::V6)
}

/// An IPv4 address whose octets may begin with zeros, which mean nothing.
fn parse_ipv4_loosely(value: &str) -> Option<Ipv4Addr> {
    let octets: Vec<u8> = value
        .split('.')
        .map(|octet| match octet.bytes().all(|b| b.is_ascii_digit()) {
            true => octet.parse::<u8>().ok(),
            false => None,
        })
        .collect::<Option<_>>()?;
    <[u8; 4]>::try_from(octets).ok().map(Ipv4Addr::from)
}

fn is_mapped(address: IpAddr) -> bool {
    address.is_ipv6() && address.to_canonical().is_ipv4()
}

fn has_host_bits(address: IpAddr, bits: u32) -> bool {
    match address {
        IpAddr::V4(address) => address.to_bits().checked_shl(bits).unwrap_or(0) != 0,
        IpAddr::V6(address) => address.to_bits().checked_shl(bits).unwrap_or(0) != 0,
    }
}

fn is_link_local(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => address.is_unicast_link_local(),
    }
}

fn is_link_local_multicast(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.octets()[..3] == [224, 0, 0],
        IpAddr::V6(address) => address.segments()[0] & 0xff0f == 0xff02,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_refused_with_its_reason() {
        let rows = [
            ("10.9.8.7", None),
            ("2001:db8::ffff", None),
            ("2001:DB8:0:0::ffff", None),
            ("10.9.8.07", Some("must not have leading 0s")),
            ("::ffff:1.2.3.4", Some("must not be an IPv4-mapped IPv6 address")),
            ("::ffff:1.2.3.04", Some("must not have leading 0s")),
        ];
        for (value, expected) in rows {
            assert_eq!(wrong_with_ip(value), expected, "{value}");
        }
        for value in
            ["", "1.2.3", "1.2.3.256", "1.2.3.4.5", "1.2.3.+4", "x", "fe80::1%eth0", "1::2::3"]
        {
            let expected = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
            assert_eq!(wrong_with_ip(value), Some(expected), "{value}");
        }
    }

    #[test]
    fn traffic_can_be_sent_to_pods_of_this_machine_and_to_nobody_else_of_it() {
        let path = Path::field("ip");
        let is_fine = |value: &str| {
            let mut errors = Vec::new();
            validate_endpoint_ip(value, &path, &mut errors);
            errors.is_empty()
        };
        for value in ["127.64.0.1", "127.127.255.254", "10.0.0.1"] {
            assert!(is_fine(value), "{value}");
        }
        for value in ["127.0.0.1", "127.63.255.255", "127.128.0.0", "::1"] {
            assert!(!is_fine(value), "{value}");
        }
    }

    #[test]
    fn a_network_is_refused_with_its_reason() {
        let rows = [
            ("10.9.8.0/24", None),
            ("0.0.0.0/0", None),
            ("10.9.8.7/32", None),
            ("2001:db8::/64", None),
            ("10.9.8.7/24", Some("must not have bits set beyond the prefix length")),
            ("2001:db8::1/64", Some("must not have bits set beyond the prefix length")),
            ("10.9.08.0/24", Some("must not have leading 0s in IP or prefix length")),
            ("10.9.8.0/024", Some("must not have leading 0s in IP or prefix length")),
            ("::ffff:1.2.3.0/120", Some("must not have an IPv4-mapped IPv6 address")),
        ];
        for (value, expected) in rows {
            assert_eq!(wrong_with_cidr(value), expected, "{value}");
        }
        for value in ["", "10.9.8.0", "10.9.8.0/33", "10.9.8.0/", "10.9.8.0/+8", "x/8", "::/129"] {
            let expected = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)";
            assert_eq!(wrong_with_cidr(value), Some(expected), "{value}");
        }
    }

    #[test]
    fn two_networks_are_dual_stack_if_they_are_of_two_families() {
        let networks =
            |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect::<Vec<_>>();
        assert!(is_dual_stack(&networks(&["10.0.0.0/8", "fd00::/8"])));
        assert!(!is_dual_stack(&networks(&["10.0.0.0/8", "11.0.0.0/8"])));
        assert!(!is_dual_stack(&networks(&["10.0.0.0/8", "x"])));
    }
}
