//! References encoded and decoded by hand.

use super::octets::{Cursor, Octets, Order};

pub(crate) const TAG_INTERNET_IOP: u32 = 0;

/// A reference: type id and tagged profiles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ior {
    pub(crate) type_id: String,
    pub(crate) profiles: Vec<(u32, Vec<u8>)>,
}

impl Ior {
    pub(crate) fn write(&self, octets: &mut Octets) {
        octets.string(&self.type_id);
        octets.u32(u32::try_from(self.profiles.len()).expect("tests are short"));
        for (tag, data) in &self.profiles {
            octets.u32(*tag).sequence(data);
        }
    }

    pub(crate) fn read(cursor: &mut Cursor) -> Self {
        let type_id = cursor.string();
        let count = cursor.u32();
        let profiles = (0..count).map(|_| (cursor.u32(), cursor.sequence()));
        Self {
            type_id,
            profiles: profiles.collect(),
        }
    }

    /// The stringified form: `IOR:` and the hexadecimal digits of the encapsulation.
    pub(crate) fn text(&self, order: Order) -> String {
        let mut octets = Octets::encapsulation(order);
        self.write(&mut octets);
        let digits: String = octets
            .octets
            .iter()
            .map(|octet| format!("{octet:02x}"))
            .collect();
        format!("IOR:{digits}")
    }

    /// Decodes a stringified `IOR:` reference.
    pub(crate) fn of_text(text: &str) -> Self {
        let digits = text.strip_prefix("IOR:").expect("it begins with IOR:");
        let octets: Vec<u8> = (0..digits.len() / 2)
            .map(|at| u8::from_str_radix(&digits[2 * at..2 * at + 2], 16).expect("digits"))
            .collect();
        Self::read(&mut Cursor::encapsulated(&octets))
    }
}

/// The profile data of an IIOP profile.
pub(crate) fn iiop_profile(
    order: Order,
    minor: u8,
    (host, port): (&str, u16),
    key: &[u8],
    components: &[(u32, Vec<u8>)],
) -> Vec<u8> {
    let mut octets = Octets::encapsulation(order);
    octets.u8(1).u8(minor).string(host).u16(port).sequence(key);
    if minor > 0 {
        octets.u32(u32::try_from(components.len()).expect("tests are short"));
        for (tag, data) in components {
            octets.u32(*tag).sequence(data);
        }
    }
    octets.octets
}

/// A decoded IIOP profile.
#[derive(Debug)]
pub(crate) struct Profile {
    pub(crate) version: (u8, u8),
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) key: Vec<u8>,
    pub(crate) components: Vec<(u32, Vec<u8>)>,
}

impl Profile {
    pub(crate) fn read(data: &[u8]) -> Self {
        let mut body = Cursor::encapsulated(data);
        let version = (body.u8(), body.u8());
        let (host, port, key) = (body.string(), body.u16(), body.sequence());
        let count = if version.1 > 0 { body.u32() } else { 0 };
        let components = (0..count).map(|_| (body.u32(), body.sequence())).collect();
        Self {
            version,
            host,
            port,
            key,
            components,
        }
    }
}
