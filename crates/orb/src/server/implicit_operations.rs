//! The operations that every object has and no servant implements (CORBA 3.3 part 1, clause 8.3).

use std::borrow::Cow;

use deckwatch_cdr::{Reader, Write};
use deckwatch_giop::{Ior, ReplyStatus};

use super::Server;
use super::outcome::Outcome;
use super::upcall::{Upcall, no_object};
use crate::raise;
use crate::wire;
use crate::{Completion, Servant, SystemException, minor};

/// Answers an implicit operation. Returns `None` for any other operation.
#[inline(never)]
pub(super) fn answer(
    server: &Server,
    upcall: &mut Upcall<'_>,
    servant: &dyn Servant,
    id: &[u8],
) -> Option<Outcome> {
    let (request, contexts) = (upcall.request, upcall.contexts);
    let reply = &mut *upcall.reply;
    let answer = match request.operation {
        b"_is_a" => is_a(server, request.body, servant, id).map(Answer::Boolean),
        b"_non_existent" | b"_not_existent" => server
            .guard(|| servant.non_existent(id))
            .and_then(|answer| answer.map(Answer::Boolean)),
        b"_repository_id" => repository_id(server, servant, id).map(Answer::Text),
        b"_component" => Ok(Answer::Nil),
        b"_interface" => Err(raise::intf_repos(
            minor::INTERFACE_REPOSITORY_ABSENT,
            Completion::No,
        )),
        b"_bind_priority_band" => server.priority.bind_band(request).map(|()| Answer::Nothing),
        b"_domain_managers" => Err(raise::no_implement(0, Completion::No)),
        _ => return None,
    };
    let written = answer.and_then(|answer| {
        let (status, sizes) = (ReplyStatus::NoException, server.sizes);
        let open = wire::begin_reply(reply, request, status, contexts, sizes)?;
        let mut writer = open.writer(reply);
        match answer {
            Answer::Boolean(answer) => writer.write_u8(u8::from(answer))?,
            Answer::Text(text) => writer.write_string_octets(text.as_bytes())?,
            Answer::Nothing => {}
            Answer::Nil => Ior::nil().write(&mut writer)?,
        }
        Ok(open.finish(reply).map(drop)?)
    });
    Some(written.map_or_else(Outcome::Raise, |()| Outcome::Replied))
}

fn is_a(
    server: &Server,
    mut arguments: Reader<'_>,
    servant: &dyn Servant,
    id: &[u8],
) -> Result<bool, SystemException> {
    let asked = arguments.read_string_octets()?;
    let poa = server.adapter.current_poa().ok_or_else(no_object)?;
    let has = server.guard(|| servant.is_a(id, &poa, asked))?;
    Ok(has || asked == wire::OBJECT_REPOSITORY_ID.as_bytes())
}

fn repository_id(
    server: &Server,
    servant: &dyn Servant,
    id: &[u8],
) -> Result<Cow<'static, str>, SystemException> {
    let poa = server.adapter.current_poa().ok_or_else(no_object)?;
    let interface = server.guard(|| servant.primary_interface(id, &poa))?;
    Ok(match &*interface {
        "" => Cow::Borrowed(wire::OBJECT_REPOSITORY_ID),
        _ => interface,
    })
}

/// The result of an implicit operation.
enum Answer {
    Boolean(bool),
    Text(Cow<'static, str>),
    /// No result.
    Nothing,
    /// A nil reference.
    Nil,
}
