//! One end of the bridge: an interface and the back end that receives from it and sends to it.

use std::cmp::Ordering;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;

use nix::errno::Errno;

use crate::attach::{Attachment, Hooks, Lock, Switch};
use crate::backend::packet::Member;
use crate::backend::xdp::Lease;
use crate::backend::{Backend, Choice, Device};
use crate::config::{End, Plan};
use crate::end::{Found, Prepared};
use crate::error::LiveError;
use crate::fanout::Fanout;
use crate::notice::Notice;
use crate::outgoing::{Exit, Outgoing};
use crate::received::Received;
use crate::sys::interface::{Condition, Interface, control_socket};
use crate::vlan::Tag;

/// What a port can do at the moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Ready,
    NoCarrier,
    Down,
    Missing,
}

/// One end of the bridge.
#[derive(Debug)]
pub(crate) struct Port {
    pub(crate) interface: Interface,
    /// What the configuration names.
    end: End,
    device: Device,
    choice: Choice,
    /// A socket to query the interface. It stays in the interface's network namespace, which this thread may
    /// have left.
    control: OwnedFd,
    state: State,
    /// Whether it is in another network namespace.
    is_elsewhere: bool,
    /// The frames missed by devices that were removed.
    missed_before: u64,
    /// Why a new interface of this name could not be used.
    last_failure: Option<String>,
    /// `None` while the interface is missing, and for the host's end. Dropped after the device, so that the
    /// kernel gets the interface back after receiving has ended.
    attachment: Option<Attachment>,
    /// Kept while the interface is away.
    lock: Option<Lock>,
    /// The programs of a TAP device behind which the host's stack is.
    host_end: Option<Hooks>,
    /// The place among the sockets of several workers.
    member: Option<Membership>,
}

/// The place of a port among those of several workers at the same interface.
#[derive(Clone, Debug)]
pub(crate) struct Membership {
    pub(crate) fanout: Arc<Fanout>,
    /// Whether it is the port of worker 0, which owns the interface.
    pub(crate) is_first: bool,
    /// Whether a program at the interface's egress pushes VLAN tags for all workers.
    pub(crate) pushes_tags: bool,
}

impl Membership {
    pub(crate) fn member(&self) -> Member<'_> {
        Member {
            fanout: &self.fanout,
            is_first: self.is_first,
        }
    }
}

impl Port {
    /// Makes a port of a prepared end. It receives from [`Port::start`] on.
    pub(crate) fn new(end: &End, prepared: Prepared, member: Option<Membership>) -> Result<Port, LiveError> {
        let Prepared {
            interface,
            device,
            choice,
            attachment,
            lock,
            host_end,
        } = prepared;
        Ok(Port {
            interface,
            end: end.clone(),
            device,
            choice,
            control: control_socket().map_err(LiveError::system("opening a control socket"))?,
            state: State::Ready,
            is_elsewhere: false,
            missed_before: 0,
            last_failure: None,
            attachment,
            lock,
            host_end,
            member,
        })
    }

    /// Begins to receive.
    pub(crate) fn start(&mut self) -> Result<(), LiveError> {
        let action = LiveError::system(format!("receiving from `{}`", self.interface.name));
        self.device.start().map_err(action)
    }

    /// Returns what the status calls it.
    pub(crate) fn title(&self) -> &str {
        match self.end {
            End::Host(_) => self.end.title(),
            // It may have been renamed.
            _ => &self.interface.name,
        }
    }

    /// Queries the interface and follows its changes. Reports each with `notify`. Returns true if the port
    /// has a new descriptor. `lease` is asked for what AF_XDP sockets use of the frame stores.
    pub(crate) fn check(
        &mut self,
        plan: &Plan,
        switch: Option<&Switch>,
        lease: &mut dyn FnMut() -> Option<Lease>,
        notify: &mut dyn FnMut(Notice),
    ) -> Result<bool, LiveError> {
        if let Some(attachment) = &mut self.attachment {
            attachment.untold().into_iter().for_each(&mut *notify);
        }
        let query = LiveError::system(format!("querying `{}`", self.interface.name));
        if let Some(condition) = Interface::condition(&self.control, self.interface.index).map_err(query)? {
            self.is_elsewhere = false;
            self.follow(condition, notify);
            return Ok(false);
        }
        self.is_elsewhere = self.device.is_elsewhere();
        if self.is_elsewhere {
            return Ok(false);
        }
        self.change_to(State::Missing, notify);
        // Ends the programs. An interface that was removed has no settings to restore.
        self.attachment = None;
        self.host_end = None;
        self.device.close();
        match self.take_again(plan, switch, lease().as_ref()) {
            Ok(()) => {
                self.last_failure = None;
                self.change_to(State::Ready, notify);
                Ok(true)
            }
            // It is not there yet. The kernel will report it.
            Err(LiveError::NoInterface { .. } | LiveError::InterfaceDown { .. }) => Ok(false),
            Err(reason) => {
                let text = reason.to_string();
                if self.last_failure.as_ref() != Some(&text) {
                    let interface = self.end.name().to_owned();
                    notify(Notice::NotTaken { interface, reason });
                    self.last_failure = Some(text);
                }
                Ok(false)
            }
        }
    }

    fn follow(&mut self, condition: Condition, notify: &mut dyn FnMut(Notice)) {
        let Condition {
            name,
            mtu,
            is_up,
            has_carrier,
        } = condition;
        if name != self.interface.name {
            let from = std::mem::replace(&mut self.interface.name, name.clone());
            notify(Notice::Renamed { from, to: name });
        }
        let before = std::mem::replace(&mut self.interface.mtu, mtu);
        let interface = self.interface.name.clone();
        match mtu.cmp(&before) {
            Ordering::Greater => notify(match self.device.follow_mtu(mtu) {
                Ok(()) => Notice::MtuRaised { interface, mtu },
                Err(most) => Notice::MtuTooLarge { interface, mtu, most },
            }),
            Ordering::Less => {
                let _ = self.device.follow_mtu(mtu);
                notify(Notice::MtuLowered { interface, mtu });
            }
            Ordering::Equal => {}
        }
        let state = match (is_up, has_carrier) {
            (false, _) => State::Down,
            (true, false) => State::NoCarrier,
            (true, true) => State::Ready,
        };
        self.change_to(state, notify);
    }

    fn change_to(&mut self, state: State, notify: &mut dyn FnMut(Notice)) {
        if std::mem::replace(&mut self.state, state) == state {
            return;
        }
        match self.trouble() {
            Some(notice) => notify(notice),
            None => notify(Notice::Back {
                interface: self.interface.name.clone(),
            }),
        }
    }

    /// Returns why nothing can be sent at the moment, if so.
    fn trouble(&self) -> Option<Notice> {
        let what = match self.state {
            State::Ready => return None,
            State::NoCarrier => "has no carrier",
            State::Down => "went down",
            State::Missing => "was removed",
        };
        let interface = self.interface.name.clone();
        Some(Notice::Lost { interface, what })
    }

    /// Takes the new interface of the configured name in place of one that was removed.
    fn take_again(
        &mut self,
        plan: &Plan,
        switch: Option<&Switch>,
        lease: Option<&Lease>,
    ) -> Result<(), LiveError> {
        let found = Found::find(&self.end, plan, Some(&self.interface), switch)?;
        if found.interface.layer != self.interface.layer {
            return Err(LiveError::OtherKind {
                interface: self.end.name().to_owned(),
            });
        }
        let member = self.member.as_ref().map(Membership::member);
        let prepared = found.prepare(plan, switch, member, lease, self.lock.clone())?;
        self.missed_before += self.device.missed();
        self.interface = prepared.interface;
        self.device = prepared.device;
        self.choice = prepared.choice;
        self.attachment = prepared.attachment;
        self.host_end = prepared.host_end;
        self.start()
    }

    /// Returns whether frames can be sent at the moment.
    #[inline]
    pub(crate) fn can_send(&self) -> bool {
        self.state == State::Ready
    }

    /// Returns whether the kernel's programs can redirect frames to the interface at the moment.
    pub(crate) fn is_within_reach(&self) -> bool {
        self.can_send() && !self.is_elsewhere
    }

    /// Returns whether the interface was removed.
    pub(crate) fn is_missing(&self) -> bool {
        self.state == State::Missing
    }

    /// Returns whether the interface is isolated from the kernel's own stack.
    pub(crate) fn is_isolated(&self) -> bool {
        self.attachment.as_ref().is_some_and(Attachment::is_isolated)
    }

    /// Returns the oldest frame that was not released yet.
    #[inline]
    pub(crate) fn front(&mut self) -> Result<Option<Received<'_>>, Errno> {
        self.device.front()
    }

    /// Releases the frame that [`Port::front`] returned. `exchange` is the chunk to receive with instead of
    /// the frame's, if the direction has adopted that one.
    #[inline]
    pub(crate) fn release(&mut self, exchange: Option<u32>) {
        self.device.release(exchange);
    }

    /// Returns the number of frames that the kernel dropped because this process was too slow.
    pub(crate) fn missed(&mut self) -> u64 {
        self.missed_before + self.device.missed()
    }

    /// Returns and clears an error that the kernel reported asynchronously.
    pub(crate) fn take_error(&self) -> Option<Errno> {
        self.device.take_error()
    }

    /// Returns the descriptor that becomes readable when frames arrive.
    pub(crate) fn receiver(&self) -> BorrowedFd<'_> {
        self.device.receiver()
    }

    /// Returns whether a program at the interface's egress pushes VLAN tags.
    pub(crate) fn pushes_tags(&self) -> bool {
        let of_others = self.member.as_ref().is_some_and(|member| member.pushes_tags);
        of_others || self.attachment.as_ref().is_some_and(Attachment::pushes_tags)
    }

    /// Returns the back end, and why it was chosen.
    pub(crate) fn choice(&self) -> &Choice {
        &self.choice
    }
}

impl Exit for Port {
    #[inline]
    fn send<'a>(&mut self, frames: impl Iterator<Item = Outgoing<'a>>) -> (usize, Result<(), Errno>) {
        self.device.send(frames)
    }

    fn send_tagged(&mut self, frame: &[u8]) -> Result<(), Errno> {
        match Tag::of(frame) {
            Some(tag) if self.pushes_tags() => self.device.send_tagged(frame, tag),
            _ => Err(Errno::EMSGSIZE),
        }
    }

    #[inline]
    fn keeps_sent(&self) -> bool {
        self.device.keeps_sent()
    }

    #[inline]
    fn completed(&mut self) -> Option<u32> {
        self.device.completed()
    }
}
