//! The other members of a group, as one member calls them.

use deckwatch_cdr::{DecodeError, Parse as _, Reader};
use deckwatch_orb::transport::Instant64;
use deckwatch_orb::{Completion, Orb, Origin, SystemException, SystemExceptionKind as Kind};

use super::GroupOptions;
use crate::channel_group::{MemberRef, Standing};
use crate::limits;
use crate::raise::raise;

/// The object key of a member, for the other members.
pub(super) const MEMBER_KEY: &str = "ChannelMember";

/// The other members of a group.
pub(crate) struct Others {
    orb: Orb,
    /// The place of this member.
    pub(super) place: usize,
    /// The others, with their places.
    pub(super) members: Vec<(usize, MemberRef)>,
}

impl Others {
    pub(super) fn new(orb: &Orb, group: &GroupOptions) -> Result<Self, SystemException> {
        let members = group.members.iter().enumerate();
        let others = members.filter(|(place, _)| *place != group.place);
        let others: Result<Vec<_>, SystemException> = others
            .map(|(place, address)| Ok((place, member(orb, address)?)))
            .collect();
        Ok(Self {
            orb: orb.clone(),
            place: group.place,
            members: others?,
        })
    }

    /// The monotonic clock of this process.
    pub(super) fn now(&self) -> Instant64 {
        self.orb.transport().now()
    }

    pub(super) fn member(&self, place: usize) -> Option<&MemberRef> {
        let mut others = self.members.iter();
        others
            .find(|(at, _)| *at == place)
            .map(|(_, member)| member)
    }

    /// Asks all at the same time.
    pub(super) fn ask(&self) -> Answers {
        let others = self.members.iter();
        let asked = others.filter_map(|(place, member)| {
            let call = member
                .object()
                .send_deferred("report_standing", |_| Ok::<_, _>(()));
            Some((*place, call.ok()?))
        });
        let asked: Vec<_> = asked.collect();
        let mut answers = Answers::default();
        for (place, call) in asked {
            let _ = call.wait(None); // A call that has not ended has no reply.
            match call.take(read_standing, |_, _| Ok(None::<SystemException>)) {
                Some(Ok(standing)) => answers.standings.push((place, standing)),
                Some(Err(raised)) => answers.has_silent |= is_silence(&raised),
                None => {}
            }
        }
        answers
    }
}

/// What the other members answer.
#[derive(Default)]
pub(super) struct Answers {
    /// Those that answer in time, with their places.
    pub(super) standings: Vec<(usize, Standing)>,
    /// Some member has taken a connection, and does not answer: its process hangs, and may go on.
    pub(super) has_silent: bool,
}

/// Whether the request was sent, and there is no reply in time. A call without a connection has no such end.
fn is_silence(raised: &SystemException) -> bool {
    raised.kind == Kind::Timeout && raised.completed == Completion::Maybe
}

fn read_standing(r: &mut Reader<'_>) -> Result<Standing, DecodeError> {
    Standing::parse(r)
}

/// The member at an address, called with the time limit of a call between members.
fn member(orb: &Orb, (host, port): &(String, u16)) -> Result<MemberRef, SystemException> {
    let host = if host.contains(':') {
        format!("[{host}]")
    } else {
        host.clone()
    };
    let url = format!("corbaloc::{host}:{port}/{MEMBER_KEY}");
    let object = orb.string_to_object_of(&url, Origin::Own)?;
    let object = object.ok_or_else(|| raise(Kind::BadParam))?;
    let limit = Some(limits::BACKUP_TIMEOUT);
    let hurried = object.with_round_trip_timeout(limit);
    Ok(MemberRef::unchecked_narrow(
        hurried.with_connect_timeout(limit),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn member_is_silent_if_it_has_the_question_and_does_not_answer_in_time() {
        let is_silent = |kind, completed| is_silence(&SystemException::new(kind, 0, completed));
        assert!(is_silent(Kind::Timeout, Completion::Maybe));
        assert!(!is_silent(Kind::Timeout, Completion::No), "not connected");
        assert!(!is_silent(Kind::CommFailure, Completion::Maybe), "closed");
        assert!(
            !is_silent(Kind::ObjectNotExist, Completion::No),
            "no member"
        );
    }
}
