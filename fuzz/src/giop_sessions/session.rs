//! A valid session of a client, made of the fuzzer's octets, and one lie in it.

use crate::choices::Choices;

use super::octets::{
    CANCEL_REQUEST, CLOSE_CONNECTION, FRAGMENT, HEADER, LOCATE_REQUEST, MESSAGE_ERROR, Octets,
    REQUEST, settle,
};

/// The plain key of the served object.
pub const KEY: &[u8] = b"Served";
/// A key of no object.
const NOBODY: &[u8] = b"Nobody";
/// Messages of a session.
const MESSAGES_MAX: usize = 40;
/// Messages in fragments at the same time; a server takes eight.
const TRAINS_MAX: usize = 4;

/// A session: messages in the order in which they are sent, and what is to come of them.
#[derive(Debug, Default)]
pub struct Session {
    pub messages: Vec<Vec<u8>>,
    pub expected: Vec<Expected>,
    /// The message with which the client ends the session; a server serves nothing behind it.
    pub ends_at: Option<usize>,
    /// The message in which the lie is, if there is one.
    pub lie_at: Option<usize>,
    /// The stream ends within that message.
    pub is_cut: bool,
    /// How many octets come at a time; 0: all.
    pub chunk: usize,
    /// The client falls silent at the end before it closes.
    pub is_silent: bool,
    /// The ORB lets requests go both ways.
    pub is_bidirectional: bool,
}

/// What is to come of one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expected {
    pub id: u32,
    /// The message that makes it whole.
    pub whole_at: usize,
    pub outcome: Outcome,
    /// The servant is called with this number.
    pub served: Option<u32>,
}

/// How a server answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Not at all.
    Nothing,
    /// With this status of a reply.
    Reply { status: u32, echo: Option<Vec<u8>> },
    /// With this status of a LocateReply.
    Located(u32),
    /// With a reply of any status: its contexts are the fuzzer's octets.
    Any,
}

/// A message in fragments of which some are still to be sent.
struct Train {
    id: u32,
    parts: std::vec::IntoIter<Vec<u8>>,
    expected: Expected,
}

struct Maker<'o> {
    choices: Choices<'o>,
    minor: u8,
    session: Session,
    trains: Vec<Train>,
    next: u32,
}

impl Session {
    /// Makes a session of these octets.
    pub fn of(octets: &[u8]) -> Self {
        let mut choices = Choices::new(octets);
        let shape = choices.octet();
        let lie = Lie::of(&mut choices);
        let mut maker = Maker {
            minor: shape % 3,
            session: Self {
                is_bidirectional: shape & 0x40 != 0,
                is_silent: shape & 0x80 != 0,
                chunk: [0, 1, 7, 13, 64, 1_000][usize::from(choices.octet()) % 6],
                ..Self::default()
            },
            choices,
            trains: Vec::new(),
            next: 0,
        };
        while !maker.choices.is_empty() && maker.session.messages.len() < MESSAGES_MAX {
            maker.step();
        }
        while let Some(index) = maker.trains.len().checked_sub(1) {
            maker.send_part(index);
        }
        let mut session = maker.session;
        lie.tell(&mut session);
        session
    }

    /// Whether the request was whole before the lie and before the client's end.
    pub fn is_certain(&self, expected: &Expected) -> bool {
        self.lie_at.is_none_or(|at| expected.whole_at < at)
            && self.ends_at.is_none_or(|at| expected.whole_at < at)
    }
}

impl Maker<'_> {
    fn send(&mut self, message: Vec<u8>) -> usize {
        self.session.messages.push(message);
        self.session.messages.len() - 1
    }

    fn begin(&mut self, kind: u8) -> (Octets, u32) {
        let is_little = self.choices.octet() & 1 != 0;
        self.next += 1;
        // Requests of the opener of a bidirectional connection have even numbers.
        let message = Octets::message(self.minor, is_little, kind);
        (message, self.next * 2)
    }

    fn step(&mut self) {
        // Fragments of GIOP 1.1 have no number: nothing that is in fragments itself may come between them.
        let may_begin =
            self.trains.len() < TRAINS_MAX && (self.minor == 2 || self.trains.is_empty());
        match self.choices.octet() % 16 {
            0..=4 => self.request(false),
            5..=7 if may_begin && self.minor != 0 => self.request(true),
            5..=8 if !self.trains.is_empty() => {
                let index = usize::from(self.choices.octet()) % self.trains.len();
                self.send_part(index);
            }
            9 | 10 => self.locate(),
            11 | 12 => self.cancel(),
            13 if self.choices.octet().is_multiple_of(4) => {
                let minor = self.minor;
                let end = Octets::message(minor, false, CLOSE_CONNECTION).into_message();
                let at = self.send(end);
                self.session.ends_at.get_or_insert(at);
            }
            14 if self.choices.octet().is_multiple_of(8) => {
                let minor = self.minor;
                let end = Octets::message(minor, false, MESSAGE_ERROR).into_message();
                let at = self.send(end);
                self.session.ends_at.get_or_insert(at);
            }
            _ => self.request(false),
        }
    }

    /// Service contexts. Returns whether some have the fuzzer's own octets.
    fn contexts(&mut self, message: &mut Octets, is_little: bool) -> bool {
        let which = self.choices.octet();
        let mut all: Vec<(u32, Vec<u8>)> = Vec::new();
        if which & 1 != 0 {
            let mut code_sets = Octets::encapsulation(is_little);
            code_sets.long(0x0501_0001);
            code_sets.long(0x0001_0109);
            all.push((1, code_sets.into_octets()));
        }
        if which & 2 != 0 {
            let mut points = Octets::encapsulation(is_little);
            points.long(1);
            points.string(b"198.51.100.7");
            points.short(2_809);
            all.push((5, points.into_octets()));
        }
        if which & 4 != 0 {
            let size = usize::from(self.choices.octet() % 32);
            all.push((0x4655_5a5a, self.choices.take(size)));
        }
        let is_own = which & 0xf0 == 0xf0;
        if is_own {
            let id = [7, 10, 11, 14, 30, 0x4457_0003, 31, 5][usize::from(which >> 1 & 7)];
            let size = usize::from(self.choices.octet() % 32);
            all.push((id, self.choices.take(size)));
        }
        message.long(all.len() as u32);
        for (id, data) in &all {
            message.long(*id);
            message.sequence(data);
        }
        is_own
    }

    fn request(&mut self, is_divided: bool) {
        let (mut message, id) = self.begin(REQUEST);
        let number = self.next;
        let choice = self.choices.octet();
        let is_nobody = choice & 0x0f == 0x0f;
        let key: &[u8] = if is_nobody { NOBODY } else { KEY };
        let (operation, waits): (&[u8], _) = match choice >> 4 {
            0..=7 => (b"echo", 3),
            8 | 9 => (b"note", 0),
            // SYNC_WITH_SERVER came with GIOP 1.2.
            10 | 11 => (b"note", u8::from(self.minor == 2)),
            12 => (b"nothing_like_it", 3),
            13 => (b"_non_existent", 3),
            14 => (b"_is_a", 3),
            _ => (b"raise", 3),
        };
        let is_own = self.head(&mut message, id, (key, operation), waits);
        if self.minor == 2 {
            message.align(8);
        }
        let data = if operation == b"_is_a" {
            message.string(b"IDL:deckwatch.test/Fuzzed:1.0");
            Vec::new()
        } else {
            let size = usize::from(self.choices.octet());
            let data = self.choices.take(size);
            message.long(number);
            message.sequence(&data);
            data
        };
        let echo = (operation == b"echo").then(|| data.clone());
        let is_object = !is_nobody && !operation.starts_with(b"_");
        let expected = Expected {
            id,
            whole_at: 0,
            outcome: match (waits, operation) {
                (0, _) => Outcome::Nothing,
                _ if is_own => Outcome::Any,
                _ if is_nobody => Outcome::Reply {
                    status: 2,
                    echo: None,
                },
                // The receipt goes before the servant is called.
                (1, _) => Outcome::Reply {
                    status: 0,
                    echo: None,
                },
                (_, b"nothing_like_it" | b"raise") => Outcome::Reply {
                    status: 2,
                    echo: None,
                },
                _ => Outcome::Reply { status: 0, echo },
            },
            served: (is_object && !is_own).then_some(number),
        };
        let whole = message.into_message();
        if is_divided {
            self.divide(whole, data.len(), expected);
        } else {
            let whole_at = self.send(whole);
            self.session.expected.push(Expected {
                whole_at,
                ..expected
            });
        }
    }

    /// The header of a request. Returns whether its contexts are the fuzzer's own.
    fn head(
        &mut self,
        message: &mut Octets,
        id: u32,
        (key, operation): (&[u8], &[u8]),
        waits: u8,
    ) -> bool {
        let is_little = self.choices.octet() & 1 != 0;
        if self.minor == 2 {
            message.long(id);
            message.octet(waits);
            (0..3).for_each(|_| message.octet(0));
            message.short(0);
            message.sequence(key);
            message.string(operation);
            return self.contexts(message, is_little);
        }
        let is_own = self.contexts(message, is_little);
        message.long(id);
        message.octet(u8::from(waits != 0));
        if self.minor == 1 {
            (0..3).for_each(|_| message.octet(0));
        }
        message.sequence(key);
        message.string(operation);
        message.sequence(b"");
        is_own
    }

    /// Divides a message within its last `size` octets, which need no alignment.
    fn divide(&mut self, whole: Vec<u8>, size: usize, expected: Expected) {
        let is_little = whole[6] & 1 != 0;
        let first = (whole.len() - size).next_multiple_of(8);
        let count = usize::from(self.choices.octet() % 5) + 1;
        if first >= whole.len() {
            let whole_at = self.send(whole);
            return self.session.expected.push(Expected {
                whole_at,
                ..expected
            });
        }
        let step = (whole.len() - first).div_ceil(count).next_multiple_of(8);
        let mut parts = Vec::new();
        let mut head = whole[..first].to_vec();
        settle(&mut head, true);
        parts.push(head);
        let mut rest = whole[first..].chunks(step).peekable();
        while let Some(data) = rest.next() {
            let mut part = Octets::message(self.minor, is_little, FRAGMENT);
            if self.minor == 2 {
                part.long(expected.id);
            }
            let mut part = part.into_message();
            part.extend(data);
            settle(&mut part, rest.peek().is_some());
            parts.push(part);
        }
        let id = expected.id;
        let parts = parts.into_iter();
        self.trains.push(Train {
            id,
            parts,
            expected,
        });
        self.send_part(self.trains.len() - 1);
    }

    fn send_part(&mut self, index: usize) {
        let Some(part) = self.trains[index].parts.next() else {
            self.trains.swap_remove(index);
            return;
        };
        let whole_at = self.send(part);
        if self.trains[index].parts.len() == 0 {
            let train = self.trains.swap_remove(index);
            let expected = Expected {
                whole_at,
                ..train.expected
            };
            self.session.expected.push(expected);
        }
    }

    fn locate(&mut self) {
        let (mut message, id) = self.begin(LOCATE_REQUEST);
        let is_nobody = self.choices.octet().is_multiple_of(2);
        message.long(id);
        if self.minor == 2 {
            message.short(0);
        }
        message.sequence(if is_nobody { NOBODY } else { KEY });
        let whole_at = self.send(message.into_message());
        self.session.expected.push(Expected {
            id,
            whole_at,
            outcome: Outcome::Located(u32::from(!is_nobody)),
            served: None,
        });
    }

    /// Cancels an earlier request, an unfinished one, or none.
    fn cancel(&mut self) {
        let (mut message, _) = self.begin(CANCEL_REQUEST);
        let id = u32::from(self.choices.octet() % 64) * 2;
        message.long(id);
        self.send(message.into_message());
        self.trains.retain(|train| train.id != id);
    }
}

/// One lie.
struct Lie {
    kind: u8,
    message: u8,
    place: u8,
    value: u32,
}

impl Lie {
    fn of(choices: &mut Choices<'_>) -> Self {
        Self {
            kind: choices.octet(),
            message: choices.octet(),
            place: choices.octet(),
            value: choices.long(),
        }
    }

    /// Changes one message of the session.
    fn tell(&self, session: &mut Session) {
        if self.kind % 12 == 0 || session.messages.is_empty() {
            return;
        }
        let at = usize::from(self.message) % session.messages.len();
        let message = &mut session.messages[at];
        let place = usize::from(self.place) % message.len();
        let octet = self.value as u8;
        match self.kind % 12 {
            // A size: any, or nearly the right one.
            1 => message[8..HEADER].copy_from_slice(&self.value.to_be_bytes()),
            2 => message[8 + usize::from(self.place % 4)] ^= octet,
            3 => message[7] = octet,
            4 => message[6] = octet,
            5 => message[4 + usize::from(self.place & 1)] = octet,
            // A number of a request, or whatever stands at the beginning.
            6 if message.len() >= HEADER + 4 => message[HEADER + 3] ^= octet,
            // A length within.
            7 if message.len() >= HEADER + 4 => {
                let at = HEADER + (place.saturating_sub(HEADER) & !3);
                let end = message.len().min(at + 4);
                let value = self.value.to_be_bytes();
                message[at..end].copy_from_slice(&value[..end - at]);
            }
            8 => {
                message.truncate(place);
                session.messages.truncate(at + 1);
                session.is_cut = true;
            }
            9 => message.truncate(place),
            10 => message.insert(place, octet),
            _ => message[place] ^= octet,
        }
        session.lie_at = Some(at);
    }
}
