//! Access tables: a valid file of rules, and one lie in it.
//!
//! A valid file permits what a plain reading of its rules permits. A file with a lie is refused at its place, or, where
//! a rule is missing, permits no more.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::Path;

use deckwatch_access::{Action, Asked, Events, Subject, Table};
use deckwatch_scenario::access::parse;
use deckwatch_scenario::mission::LoadError;

use crate::choices::Choices;

/// Rules of a file, and words of a list, at most.
const RULES_MAX: usize = 6;
const WORDS_MAX: usize = 4;
/// Requests that each table is asked about.
const QUESTIONS: usize = 64;

const ADDRESSES: &[IpAddr] = &[
    IpAddr::V4(Ipv4Addr::new(10, 1, 2, 3)),
    IpAddr::V4(Ipv4Addr::new(10, 1, 2, 131)),
    IpAddr::V4(Ipv4Addr::new(10, 129, 2, 3)),
    IpAddr::V4(Ipv4Addr::new(192, 0, 2, 255)),
    IpAddr::V4(Ipv4Addr::LOCALHOST),
    IpAddr::V6(Ipv6Addr::LOCALHOST),
    IpAddr::V6(Ipv6Addr::new(0xfd00, 1, 2, 3, 4, 5, 6, 7)),
    IpAddr::V6(Ipv6Addr::new(0xfd00, 1, 2, 3, 4, 5, 6, 0x8007)),
    IpAddr::V6(Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1)),
];
const NAMES: &[&str] = &[
    "rts.ship",
    "RTS.ship",
    "nav.ship",
    "spiffe://ship/nav",
    "spiffe://ship/NAV",
];
const OPERATIONS: &[&str] = &["resolve", "list", "push", "_get_heading", "*"];
const OBJECTS: &[&str] = &[
    "NAV",
    "names",
    "ship/nav/",
    "ship/nav/rudder",
    "ship/navigation",
];
const NUMBERS: &[i32] = &[0, 1, 2, 16, 20, 29, 30, i32::MAX];

/// A peer of a rule.
#[derive(Clone, Debug)]
enum Peer {
    Anyone,
    ThisHost,
    User(u32),
    Name(&'static str),
    Network(IpAddr, u8),
}

/// A rule as its file has it.
#[derive(Clone, Debug, Default)]
struct Draft {
    who: Vec<Peer>,
    may: Vec<(Action, &'static str)>,
    operations: Vec<&'static str>,
    on: Vec<&'static str>,
    types: Vec<(i32, i32)>,
    sources: Vec<(i32, i32)>,
}

fn some<T>(
    choices: &mut Choices<'_>,
    least: usize,
    mut one: impl FnMut(&mut Choices<'_>) -> T,
) -> Vec<T> {
    let count = least + choices.below(WORDS_MAX);
    (0..count).map(|_| one(choices)).collect()
}

impl Draft {
    fn of(choices: &mut Choices<'_>) -> Self {
        let mut draft = Self {
            who: some(choices, 1, Peer::of),
            may: some(choices, 0, |choices| *choices.one(&Action::ALL)),
            operations: some(choices, 0, |choices| *choices.one(OPERATIONS)),
            on: some(choices, 0, |choices| *choices.one(OBJECTS)),
            types: some(choices, 0, range),
            sources: some(choices, 0, range),
        };
        if draft.may.is_empty() && draft.operations.is_empty() {
            draft.may.push(Action::ALL[0]);
        }
        draft
    }

    /// Its lines: each with a key and the words of its list.
    fn lines(&self) -> Vec<(&'static str, Vec<String>)> {
        let text = |all: &[&str]| all.iter().map(|word| (*word).to_owned()).collect();
        let ranges = |all: &[(i32, i32)]| all.iter().map(range_text).collect();
        let lines: [(_, Vec<String>); 6] = [
            ("who", self.who.iter().map(Peer::text).collect()),
            (
                "may",
                self.may
                    .iter()
                    .map(|(_, word)| (*word).to_owned())
                    .collect(),
            ),
            ("operations", text(&self.operations)),
            ("on", text(&self.on)),
            ("types", ranges(&self.types)),
            ("sources", ranges(&self.sources)),
        ];
        lines
            .into_iter()
            .filter(|(_, words)| !words.is_empty())
            .collect()
    }

    fn permits(&self, subject: Subject<'_>, asked: &Asked<'_>) -> bool {
        let does = self
            .may
            .iter()
            .any(|(action, _)| Some(*action) == asked.action)
            || self
                .operations
                .iter()
                .any(|name| *name == "*" || name.as_bytes() == asked.operation);
        let is_on = |object: &str| {
            let is =
                |name: &&str| *name == object || (name.ends_with('/') && object.starts_with(*name));
            self.on.iter().any(is)
        };
        let is_in = |ranges: &[(i32, i32)], number: Option<i32>| {
            let within = |number| {
                ranges
                    .iter()
                    .any(|(first, last)| (*first..=*last).contains(&number))
            };
            ranges.is_empty() || number.is_some_and(within)
        };
        does && self.who.iter().any(|peer| peer.is(subject))
            && (self.on.is_empty() || asked.object.is_some_and(is_on))
            && asked.events.is_none_or(|events| {
                is_in(&self.types, events.event_type) && is_in(&self.sources, events.source)
            })
    }
}

impl Peer {
    fn of(choices: &mut Choices<'_>) -> Self {
        match choices.octet() % 8 {
            0 => Self::Anyone,
            1 => Self::ThisHost,
            2 => Self::User(choices.below(4) as u32),
            3 => Self::Name(*choices.one(NAMES)),
            _ => {
                let address = *choices.one(ADDRESSES);
                let prefix = choices.below(octets(address).len() * 8 + 1);
                Self::Network(without_host(address, prefix), prefix as u8)
            }
        }
    }

    fn text(&self) -> String {
        match self {
            Self::Anyone => "anyone".to_owned(),
            Self::ThisHost => "this-host".to_owned(),
            Self::User(user) => format!("uid:{user}"),
            Self::Name(name) => format!("cert:{name}"),
            Self::Network(address, prefix) => format!("{address}/{prefix}"),
        }
    }

    fn is(&self, subject: Subject<'_>) -> bool {
        match self {
            Self::Anyone => true,
            Self::ThisHost => subject.is_this_host,
            Self::User(user) => subject.user == Some(*user),
            Self::Name(name) if name.contains("://") => subject.name == Some(*name),
            Self::Name(name) => subject.name.is_some_and(|it| it.eq_ignore_ascii_case(name)),
            Self::Network(network, prefix) => subject.address.is_some_and(|address| {
                address.is_ipv4() == network.is_ipv4()
                    && without_host(address, usize::from(*prefix)) == *network
            }),
        }
    }
}

fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    }
}

/// The address with zeros behind its first bits.
fn without_host(address: IpAddr, prefix: usize) -> IpAddr {
    let mut octets = octets(address);
    for bit in prefix..octets.len() * 8 {
        octets[bit / 8] &= !(0x80 >> (bit % 8));
    }
    match <[u8; 4]>::try_from(&octets[..]) {
        Ok(octets) => IpAddr::from(octets),
        Err(_) => {
            IpAddr::from(<[u8; 16]>::try_from(octets).expect("an address has 4 octets or 16"))
        }
    }
}

fn range(choices: &mut Choices<'_>) -> (i32, i32) {
    let (one, other) = (*choices.one(NUMBERS), *choices.one(NUMBERS));
    (one.min(other), one.max(other))
}

fn range_text((first, last): &(i32, i32)) -> String {
    if first == last {
        first.to_string()
    } else {
        format!("{first}-{last}")
    }
}

/// One lie in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lie {
    No,
    /// A rule is missing.
    Missing,
    /// A word of a list is none.
    Word,
    /// A key that there is not.
    Key,
    /// A key is there twice.
    Twice,
    /// A list has no words.
    Empty,
    /// The rule permits nothing.
    Nothing,
    /// A text in place of a list.
    Kind,
    /// The text ends at some octet.
    Cut,
    /// An octet is another one.
    Octet,
}

const LIES: &[Lie] = &[
    Lie::No,
    Lie::Missing,
    Lie::Word,
    Lie::Key,
    Lie::Twice,
    Lie::Empty,
    Lie::Nothing,
    Lie::Kind,
    Lie::Cut,
    Lie::Octet,
];

/// Words that are none of these keys.
fn bad_word(choices: &mut Choices<'_>, key: &str) -> &'static str {
    const WHO: &[&str] = &[
        "10.1.2.3/16",
        "ship",
        "uid:",
        "uid:-1",
        "uid:4294967296",
        "cert:",
        "1.2.3.4/33",
        "fd00::/129",
        "fd00::1/8",
        "10.1.0.0/",
        "10.1.0.0/+8",
        "this-host/8",
        "Anyone",
        "",
    ];
    const MAY: &[&str] = &["fly", "Supply", "supply ", "*", ""];
    const RANGES: &[&str] = &[
        "29-20",
        "-5",
        "2147483648",
        "1-",
        "-",
        "1-2-3",
        "+1",
        " 1",
        "*",
        "",
    ];
    let words = match key {
        "who" => WHO,
        "may" => MAY,
        _ => RANGES,
    };
    *choices.one(words)
}

/// A file: its text, and where the lie is in it.
#[derive(Debug)]
struct File {
    text: String,
    lie_at: std::ops::Range<usize>,
}

impl File {
    fn of(drafts: &[Draft], lie: Lie, choices: &mut Choices<'_>) -> Self {
        let lying = choices.below(drafts.len().max(1));
        let mut file = Self {
            text: String::new(),
            lie_at: 0..0,
        };
        for (index, draft) in drafts.iter().enumerate() {
            if index == lying && lie == Lie::Missing {
                continue;
            }
            file.text.push_str("[[allow]]\n");
            let mut lines = draft.lines();
            if index != lying {
                lines.iter().for_each(|line| file.line(line));
                continue;
            }
            if lie == Lie::Nothing {
                lines.retain(|(key, _)| !matches!(*key, "may" | "operations"));
            }
            let mut at = choices.below(lines.len());
            if lie == Lie::Word {
                // Names and operations may be any text.
                while matches!(lines[at].0, "operations" | "on") {
                    at -= 1;
                }
                let word = choices.below(lines[at].1.len());
                lines[at].1[word] = bad_word(choices, lines[at].0).to_owned();
            }
            for (number, line) in lines.iter().enumerate() {
                let begin = file.text.len();
                match lie {
                    Lie::Key if number == at => file.text.push_str("users = [\"anyone\"]\n"),
                    Lie::Empty if number == at => file.line(&(line.0, Vec::new())),
                    Lie::Kind if number == at => {
                        file.text.push_str(&format!("{} = \"anyone\"\n", line.0))
                    }
                    _ => file.line(line),
                }
                if number == at {
                    file.lie_at = begin..file.text.len();
                }
            }
            if matches!(lie, Lie::Twice) {
                let begin = file.text.len();
                file.line(&lines[at]);
                file.lie_at = begin..file.text.len();
            }
        }
        if file.text.is_empty() {
            file.text.push_str("allow = []\n");
        }
        let place = choices.below(file.text.len());
        match lie {
            Lie::Cut => file.text.truncate(place),
            Lie::Octet => {
                let octet = char::from(choices.octet() % 0x80);
                file.text
                    .replace_range(place..=place, octet.encode_utf8(&mut [0; 4]));
            }
            _ => {}
        }
        file
    }

    fn line(&mut self, (key, words): &(&str, Vec<String>)) {
        self.text.push_str(&format!("{key} = {words:?}\n"));
    }

    fn read(&self) -> Result<Table, LoadError> {
        parse(Path::new("fuzz.toml"), self.text.as_str().into())
    }
}

/// Writes the file that these octets make, and reads it.
///
/// # Panics
/// Where a promise is broken.
pub fn play(octets: &[u8]) {
    let mut choices = Choices::new(octets);
    let lie = *choices.one(LIES);
    let count = choices.below(RULES_MAX);
    let drafts: Vec<Draft> = (0..count).map(|_| Draft::of(&mut choices)).collect();
    let lie = if drafts.is_empty() { Lie::No } else { lie };
    let file = File::of(&drafts, lie, &mut choices);
    match (file.read(), lie) {
        (Ok(table), Lie::No | Lie::Missing) => ask(&table, &drafts, lie, &mut choices),
        (Ok(_), Lie::Cut | Lie::Octet) => {}
        (Ok(_), _) => panic!("{lie:?} is accepted: {file:?}"),
        (Err(LoadError::Malformed(faults)), lie) => {
            assert!(
                !matches!(lie, Lie::No | Lie::Missing),
                "it is sound: {faults}"
            );
            let places = faults.list().iter().map(|fault| fault.place.start);
            let places: Vec<usize> = places.collect();
            assert!(!places.is_empty() && places.iter().all(|at| *at <= file.text.len()));
            if lie == Lie::Word {
                let is_there = places.iter().any(|at| file.lie_at.contains(at));
                assert!(is_there, "the lie is elsewhere: {faults}");
            }
        }
        (Err(error), _) => panic!("{error}"),
    }
}

/// Compares the table's answers with those of the drafts.
fn ask(table: &Table, drafts: &[Draft], lie: Lie, choices: &mut Choices<'_>) {
    let mut seed = u64::from(choices.long()) << 1 | 1;
    let mut next = |end: usize| {
        // Multiplication and shift (PCG): the octets that are left would not suffice.
        seed = seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize % end
    };
    for _ in 0..QUESTIONS {
        let subject = match next(4) {
            0 => Subject::user(next(5) as u32),
            1 => Subject {
                name: Some(NAMES[next(NAMES.len())]),
                ..Subject::at(ADDRESSES[next(ADDRESSES.len())])
            },
            2 => Subject::UNKNOWN,
            _ => Subject::at(ADDRESSES[next(ADDRESSES.len())]),
        };
        let mut number = || (next(4) != 0).then(|| NUMBERS[next(NUMBERS.len())]);
        let events = Events {
            event_type: number(),
            source: number(),
        };
        let asked = Asked {
            action: (next(4) != 0).then(|| Action::ALL[next(Action::ALL.len())].0),
            operation: OPERATIONS[next(OPERATIONS.len() - 1)].as_bytes(),
            object: (next(6) != 0).then(|| OBJECTS[next(OBJECTS.len())]),
            events: (next(2) != 0).then_some(events),
        };
        let permits = drafts.iter().any(|draft| draft.permits(subject, &asked));
        let found = table.permits(subject, &asked);
        assert!(
            !found || permits,
            "it permits {subject:?} {asked:?} by {drafts:?}"
        );
        assert!(
            found || !permits || lie == Lie::Missing,
            "it refuses {subject:?} {asked:?} by {drafts:?}"
        );
    }
}
