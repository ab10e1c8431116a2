//! What an address is: public, or one of the many kinds that a name of the outside has no business resolving to.

use serde::Serialize;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The kind of an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum AddressClass {
    /// Globally reachable.
    Public,
    /// This host itself.
    Loopback,
    /// RFC 1918, RFC 4193 and the old site-local range.
    Private,
    /// RFC 3927, RFC 4291 section 2.5.6.
    LinkLocal,
    /// Shared by the customers of a carrier, RFC 6598.
    Cgnat,
    /// Answers with the credentials or the identity of a cloud instance.
    Metadata,
    /// RFC 5771, RFC 4291 section 2.7.
    Multicast,
    /// Documentation, benchmarking, "this network", deprecated transition prefixes, and all that is not assigned as
    /// global unicast (RFC 6890 and the IANA special-purpose registries).
    Reserved,
}

impl AddressClass {
    /// The stable code of [`crate::AddressDecision`].
    pub fn code(self) -> &'static str {
        match self {
            Self::Public => "public",
            Self::Loopback => "loopback",
            Self::Private => "private",
            Self::LinkLocal => "link_local",
            Self::Cgnat => "cgnat",
            Self::Metadata => "metadata",
            Self::Multicast => "multicast",
            Self::Reserved => "reserved",
        }
    }
}

/// An IPv4 address that is mapped into IPv6 as the IPv4 address that the kernel would connect to.
pub(crate) fn unmapped(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V6(v6) => v6.to_ipv4_mapped().map_or(address, IpAddr::V4),
        IpAddr::V4(_) => address,
    }
}

/// The IPv4 address to which a packet for this IPv6 address is carried in the end, where the address says so: mapped
/// and compatible (RFC 4291 section 2.5.5), translated (RFC 2765), NAT64 (RFC 6052, RFC 8215), 6to4 (RFC 3056), Teredo
/// (RFC 4380) and ISATAP (RFC 5214).
pub fn embedded_v4(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let o = address.octets();
    let [.., a, b, c, d] = o;
    let last = Ipv4Addr::new(a, b, c, d);
    match address.segments() {
        // `::` and `::1` are addresses of their own.
        [0, 0, 0, 0, 0, 0, 0, 0 | 1] => None,
        [0, 0, 0, 0, 0, 0 | 0xffff, _, _] | [0, 0, 0, 0, 0xffff, 0, _, _] | [0x64, 0xff9b, 0, 0, 0, 0, _, _] => {
            Some(last)
        }
        // The prefix of RFC 8215 is used with a suffix of 32 bits at its end, or as a /48 of RFC 6052, which leaves
        // out the ninth byte.
        [0x64, 0xff9b, 1, 0, 0, 0, _, _] => Some(last),
        [0x64, 0xff9b, 1, ..] => {
            let [_, _, _, _, _, _, a, b, _, c, d, ..] = o;
            Some(Ipv4Addr::new(a, b, c, d))
        }
        [0x2002, ..] => {
            let [_, _, a, b, c, d, ..] = o;
            Some(Ipv4Addr::new(a, b, c, d))
        }
        // The client's address is stored inverted (RFC 4380 section 4).
        [0x2001, 0, ..] => Some(Ipv4Addr::new(!a, !b, !c, !d)),
        [_, _, _, _, 0 | 0x0200, 0x5efe, _, _] => Some(last),
        _ => None,
    }
}

/// The kind of an address, by itself: what it embeds is judged apart.
pub fn classify(address: IpAddr) -> AddressClass {
    match unmapped(address) {
        address if metadata_why(address).is_some() => AddressClass::Metadata,
        IpAddr::V4(v4) => classify_v4(v4),
        IpAddr::V6(v6) => classify_v6(v6),
    }
}

fn classify_v4(v4: Ipv4Addr) -> AddressClass {
    match v4.octets() {
        [127, ..] => AddressClass::Loopback,
        [10, ..] | [172, 16..=31, ..] | [192, 168, ..] => AddressClass::Private,
        [100, 64..=127, ..] => AddressClass::Cgnat,
        [169, 254, ..] => AddressClass::LinkLocal,
        [224..=239, ..] => AddressClass::Multicast,
        // 0.0.0.0/8 reaches this host on Linux; 192.0.0.0/24 is for protocols; 192.88.99.0/24 was the 6to4 relay;
        // 198.18.0.0/15 is for benchmarks, and the addresses that stand for names inside the sandbox.
        [0, ..]
        | [192, 0, 0 | 2, _]
        | [192, 88, 99, _]
        | [198, 18 | 19, ..]
        | [198, 51, 100, _]
        | [203, 0, 113, _]
        | [240..=255, ..] => AddressClass::Reserved,
        _ => AddressClass::Public,
    }
}

fn classify_v6(v6: Ipv6Addr) -> AddressClass {
    match v6.segments() {
        [0, 0, 0, 0, 0, 0, 0, 1] => AddressClass::Loopback,
        // fc00::/7, and fec0::/10 that RFC 3879 deprecated but networks still use.
        [0xfc00..=0xfdff, ..] | [0xfec0..=0xfeff, ..] => AddressClass::Private,
        [0xfe80..=0xfebf, ..] => AddressClass::LinkLocal,
        [0xff00..=0xffff, ..] => AddressClass::Multicast,
        // NAT64 of the well-known prefix is how hosts without IPv4 reach IPv4; what it embeds is judged apart.
        [0x64, 0xff9b, 0, 0, 0, 0, _, _] => AddressClass::Public,
        // 2001::/23 is for protocols (Teredo, ORCHID, benchmarks); 2001:db8::/32 and 3fff::/20 are for documentation.
        [0x2001, 0..=0x1ff, ..] | [0x2001, 0xdb8, ..] | [0x3fff, 0..=0xfff, ..] => AddressClass::Reserved,
        [0x2000..=0x3fff, ..] => AddressClass::Public,
        _ => AddressClass::Reserved,
    }
}

/// Addresses that answer with the identity or the credentials of a cloud instance: network, length of the prefix, whose.
const METADATA_V4: &[(Ipv4Addr, u32, &str)] = &[
    (Ipv4Addr::new(169, 254, 169, 0), 24, "instance metadata, name servers and time of most clouds"),
    (Ipv4Addr::new(169, 254, 170, 0), 24, "credentials of AWS containers"),
    (Ipv4Addr::new(168, 63, 129, 16), 32, "the Azure wire server"),
    (Ipv4Addr::new(100, 100, 100, 200), 32, "Alibaba Cloud metadata"),
    (Ipv4Addr::new(192, 0, 0, 192), 32, "Oracle Cloud metadata"),
    (Ipv4Addr::new(169, 254, 0, 23), 32, "Tencent Cloud metadata"),
    (Ipv4Addr::new(169, 254, 42, 42), 32, "Scaleway metadata"),
];

/// The same for IPv6.
const METADATA_V6: &[(Ipv6Addr, &str)] = &[
    (Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254), "AWS metadata"),
    (Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x253), "AWS name server"),
    (Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x123), "AWS time"),
    (Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x23), "credentials of AWS containers"),
    (Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254), "Google Cloud metadata"),
    (Ipv6Addr::new(0xfd00, 0xc1, 0, 0, 0, 0, 0xa9fe, 0xa9fe), "Oracle Cloud metadata"),
    (Ipv6Addr::new(0xfd00, 0x42, 0, 0, 0, 0, 0, 0x42), "Scaleway metadata"),
    (Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0xa9fe, 0xa9fe), "OpenStack metadata"),
];

/// Names of the same services. They are refused by name, so that no query for them is ever asked.
const METADATA_NAMES: &[&str] = &[
    "metadata.google.internal",
    "metadata.goog",
    "metadata",
    "instance-data",
    "instance-data.ec2.internal",
    "metadata.azure.internal",
    "metadata.tencentyun.com",
    "metadata.platformequinix.com",
    "metadata.packet.net",
];

/// Which metadata service answers at this address, if one does.
pub(crate) fn metadata_why(address: IpAddr) -> Option<&'static str> {
    match address {
        IpAddr::V4(v4) => METADATA_V4
            .iter()
            .find(|(net, len, _)| (u32::from(v4) ^ u32::from(*net)).leading_zeros() >= *len)
            .map(|(_, _, why)| *why),
        IpAddr::V6(v6) => METADATA_V6.iter().find(|(one, _)| *one == v6).map(|(_, why)| *why),
    }
}

/// Whether a metadata service answers to this canonical name.
pub(crate) fn is_metadata_name(name: &str) -> bool {
    METADATA_NAMES.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn v6(text: &str) -> Ipv6Addr {
        text.parse().unwrap()
    }

    #[test]
    fn every_embedding_is_unwrapped() {
        for text in [
            "::ffff:169.254.169.254",
            "::169.254.169.254",
            "::ffff:0:169.254.169.254",
            "64:ff9b::a9fe:a9fe",
            "64:ff9b:1::a9fe:a9fe",
            "64:ff9b:1:a9fe:a9:fe00::",
            "2002:a9fe:a9fe::1",
            "2001:0:4136:e378:8000:63bf:5601:5601",
            "2a00:1450::5efe:a9fe:a9fe",
            "fe80::200:5efe:a9fe:a9fe",
        ] {
            assert_eq!(embedded_v4(v6(text)), Some(Ipv4Addr::new(169, 254, 169, 254)), "{text}");
        }
        for text in ["::", "::1", "2606:4700::1", "fe80::1"] {
            assert_eq!(embedded_v4(v6(text)), None, "{text}");
        }
    }

    #[test]
    fn classes() {
        use AddressClass::*;
        for (text, class) in [
            ("8.8.8.8", Public),
            ("1.1.1.1", Public),
            ("172.32.0.1", Public),
            ("100.128.0.1", Public),
            ("2606:4700::1111", Public),
            ("127.0.0.1", Loopback),
            ("127.255.255.254", Loopback),
            ("::1", Loopback),
            ("::ffff:127.0.0.1", Loopback),
            ("10.0.0.1", Private),
            ("172.16.0.1", Private),
            ("172.31.255.255", Private),
            ("192.168.1.1", Private),
            ("fd12:3456::1", Private),
            ("fec0::1", Private),
            ("100.64.0.1", Cgnat),
            ("100.127.255.255", Cgnat),
            ("169.254.1.1", LinkLocal),
            ("fe80::1", LinkLocal),
            ("169.254.169.254", Metadata),
            ("169.254.169.253", Metadata),
            ("169.254.170.2", Metadata),
            ("169.254.170.23", Metadata),
            ("168.63.129.16", Metadata),
            ("100.100.100.200", Metadata),
            ("fd00:ec2::254", Metadata),
            ("fe80::a9fe:a9fe", Metadata),
            ("::ffff:169.254.169.254", Metadata),
            ("224.0.0.1", Multicast),
            ("239.255.255.255", Multicast),
            ("ff02::1", Multicast),
            ("0.0.0.0", Reserved),
            ("0.1.2.3", Reserved),
            ("192.0.2.1", Reserved),
            ("198.18.0.1", Reserved),
            ("198.19.255.255", Reserved),
            ("198.51.100.1", Reserved),
            ("203.0.113.1", Reserved),
            ("240.0.0.1", Reserved),
            ("255.255.255.255", Reserved),
            ("::", Reserved),
            ("2001:db8::1", Reserved),
            ("3fff::1", Reserved),
            ("2001:0:1::1", Reserved),
            ("100::1", Reserved),
            ("5f00::1", Reserved),
            ("64:ff9b:1::1", Reserved),
            ("::8.8.8.8", Reserved),
        ] {
            assert_eq!(classify(text.parse().unwrap()), class, "{text}");
        }
    }
}
