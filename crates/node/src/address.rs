//! The addresses of Pods: each has one of its own in the loopback network, so that every Pod can
//! listen on the ports that its manifest names.

use std::collections::HashSet;
use std::net::Ipv4Addr;

/// A network that addresses are taken from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressRange {
    /// Its first address.
    pub network: Ipv4Addr,
    /// How many bits of it are fixed.
    pub prefix_bits: u8,
}

impl Default for AddressRange {
    /// 127.64.0.0/10: four million addresses, away from 127.0.0.1, 127.0.1.1 and 127.0.0.53,
    /// which others use.
    fn default() -> Self {
        AddressRange { network: Ipv4Addr::new(127, 64, 0, 0), prefix_bits: 10 }
    }
}

/// Hands out addresses. One that was given back is not used again until all others were.
#[derive(Debug)]
pub(crate) struct Addresses {
    first: u32,
    count: u32,
    next: u32,
    taken: HashSet<u32>,
}

impl Addresses {
    pub(crate) fn new(range: AddressRange) -> Self {
        let host_bits = 32_u32.saturating_sub(u32::from(range.prefix_bits)).min(31);
        let size = 1_u32 << host_bits;
        let network = u32::from(range.network) & !(size - 1);
        // Neither the network itself nor its broadcast address.
        let count = size.saturating_sub(2).max(1);
        Addresses { first: network + 1, count, next: 0, taken: HashSet::new() }
    }

    /// An address that nobody has, if there is one.
    pub(crate) fn take(&mut self) -> Option<Ipv4Addr> {
        if self.taken.len() >= self.count as usize {
            return None;
        }
        loop {
            let offset = self.next;
            self.next = (self.next + 1) % self.count;
            if self.taken.insert(offset) {
                return Some(Ipv4Addr::from(self.first + offset));
            }
        }
    }

    /// Gives an address back.
    pub(crate) fn give_back(&mut self, address: Ipv4Addr) {
        self.taken.remove(&u32::from(address).wrapping_sub(self.first));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_address_is_given_once_until_it_is_given_back() {
        let range = AddressRange { network: Ipv4Addr::new(127, 64, 0, 77), prefix_bits: 29 };
        let mut addresses = Addresses::new(range);
        let all: Vec<Ipv4Addr> = std::iter::from_fn(|| addresses.take()).collect();
        let last_bytes: Vec<u8> = all.iter().map(|address| address.octets()[3]).collect();
        assert_eq!(last_bytes, [73, 74, 75, 76, 77, 78]);
        addresses.give_back(all[3]);
        addresses.give_back(Ipv4Addr::new(1, 2, 3, 4));
        assert_eq!(addresses.take(), Some(all[3]));
        assert_eq!(addresses.take(), None);
    }

    #[test]
    fn an_address_rests_before_it_is_used_again() {
        let mut addresses = Addresses::new(AddressRange::default());
        let first = addresses.take().expect("there are millions");
        assert_eq!(first, Ipv4Addr::new(127, 64, 0, 1));
        addresses.give_back(first);
        assert_eq!(addresses.take(), Some(Ipv4Addr::new(127, 64, 0, 2)));
    }
}
