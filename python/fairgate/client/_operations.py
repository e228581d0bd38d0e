"""A method for each route of the API.

This file is written by python/generate_client.py from python/openapi.json. `make python-client` writes it
again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal, overload

from .. import _arguments
from ._transport import Transport, path_of
from .models import (
    ChangeMade,
    Changes,
    ClassDocument,
    ClassesDocument,
    Confirmed,
    DirectionStatus,
    Entry,
    FlowsStatus,
    Health,
    HistoryDocument,
    OutlineDocument,
    PlaceDocument,
    Reservations,
    Status,
    SubscriberDocument,
    SubscriberMade,
    SubscriberNow,
    SubscriberStatus,
    TermsStatus,
    TreesStatus,
)

__all__ = ["Operations"]


def _given(name: str, value: Any) -> dict[str, Any]:
    return {} if value is None else {name: value}


class Operations:
    """A method for each route of the API."""

    _transport: Transport

    def metrics(self) -> str:
        """The counters, as OpenMetrics text.

        Returns
        -------
        str
            OpenMetrics 1.0.

        Examples
        --------
        >>> run.metrics().splitlines()[-1]
        '# EOF'
        """
        return self._transport.ask("GET", "/metrics", str)

    def changes(self) -> Changes:
        """What the changes so far have done.

        Returns
        -------
        Changes
            The changes so far.

        Examples
        --------
        >>> run.changes().changes.dropped
        0
        """
        return self._transport.ask("GET", "/v1/changes", Changes)

    def change(
        self,
        lines: Iterable[str],
        *,
        because: str | None = None,
        confirm_within_s: int | None = None,
        from_: str | None = None,
        if_match: str | None = None,
    ) -> ChangeMade:
        """Change the trees: all lines or none.

        The lines are those of `fairgate class`, `filter` and `queue` with add, change, move and delete.
        They are checked, and then applied while packets are forwarded. With `if_match`, nothing is
        changed if anyone has changed the trees since the client has read them.

        Parameters
        ----------
        lines : iterable of str
            The changes in words, as of `fairgate class`, `filter` and `queue`: `class change 30
            rate=7mbit`.
        because : str, optional
            Why it is made, for the log of the run.
        confirm_within_s : int, optional
            The time within which the change must be confirmed, 1 to 3600 seconds. Else it is undone.
        from_ : str, optional
            The interface that the changed direction receives from. It may be left out if both directions
            have the same tree: then both are changed.
        if_match : str, optional
            The entity tag of the trees that are changed.

        Returns
        -------
        ChangeMade
            A change that was made.

        Raises
        ------
        Stale
            The trees have changed since.
        Refused
            The run refuses the change.

        Examples
        --------
        >>> made = run.change(["class change 30 rate=7mbit"], from_="eth0", if_match=run.trees().etag)
        >>> made.revision == run.health().revision
        True
        """
        return self._transport.ask(
            "POST",
            "/v1/changes",
            ChangeMade,
            body={
                **_given("because", because),
                **_given("confirm_within_s", confirm_within_s),
                **_given("from", from_),
                "lines": _arguments.listed("lines", lines),
            },
            headers={"If-Match": if_match},
        )

    def confirm(self) -> Confirmed:
        """Keep the change that waits for its confirmation.

        It was made with `confirm_within_s`, and would be undone when this time has passed.

        Returns
        -------
        Confirmed
            A change that is kept.

        Raises
        ------
        Refused
            No change waits for its confirmation.

        Examples
        --------
        >>> made = run.change(["class change 30 rate=8mbit"], from_="eth0", confirm_within_s=60)
        >>> run.confirm().revision == made.revision
        True
        """
        return self._transport.ask("POST", "/v1/changes/confirm", Confirmed, body={})

    def classes(
        self,
        from_: str,
        *,
        sort: Literal["rate", "delay", "p95", "drops", "backlog", "use"] | None = None,
        limit: int | None = None,
    ) -> ClassesDocument:
        """What the classes of a direction do just now.

        The run is read once a second, or less often if a reading takes more than 5 % of the time. All
        clients get the same reading. Percentiles of delays are counted from the first request for the
        classes or the history on, until nobody has asked for a minute.

        Parameters
        ----------
        from_ : str
            The interface that the direction receives from.
        sort : {'rate', 'delay', 'p95', 'drops', 'backlog', 'use'}, optional
            What the first classes have most of. Default: `rate`.
        limit : int, optional
            How many classes at most, besides the root. Default: 100.

        Returns
        -------
        ClassesDocument
            What the classes of a direction did between the last two readings of the run.

        Raises
        ------
        NotFound
            There is no such direction.

        Examples
        --------
        >>> run.classes("eth0", sort="delay", limit=5).classes[0].class_
        'root'
        """
        return self._transport.ask(
            "GET", "/v1/classes", ClassesDocument, query={"from": from_, "sort": sort, "limit": limit}
        )

    def flows(
        self,
        *,
        sort: Literal["rate", "bytes", "delay", "dropped", "round_trip"] | None = None,
        limit: int | None = None,
    ) -> FlowsStatus:
        """The flows that had packets in the last minute.

        They are observed while somebody asks: the first answer takes a second.

        Parameters
        ----------
        sort : {'rate', 'bytes', 'delay', 'dropped', 'round_trip'}, optional
            The order, the largest first; by rate without it.
        limit : int, optional
            How many of them, 100 without it.

        Returns
        -------
        FlowsStatus
            The flows of a run that had packets in the last minute.

        Examples
        --------
        >>> run.flows(limit=5).active >= 0
        True
        """
        return self._transport.ask("GET", "/v1/flows", FlowsStatus, query={"sort": sort, "limit": limit})

    def health(self) -> Health:
        """Whether the forwarding threads answer.

        Returns
        -------
        Health
            That the run answers.

        Raises
        ------
        Silent
            They do not answer within 5 s, or the run ends.

        Examples
        --------
        >>> run.health().version == fg.__version__
        True
        """
        return self._transport.ask("GET", "/v1/health", Health)

    def history(
        self,
        from_: str,
        *,
        class_: str | None = None,
        seconds: int | None = None,
        after: float | None = None,
        limit: int | None = None,
    ) -> HistoryDocument:
        """What the classes of a direction did in the last 24 hours.

        A point is made of each reading for 10 minutes, for each 10 s in 2 hours, and for each minute in
        24 hours. The answer has the finest of them that go back as far as is wanted. Only the classes
        that send most have them. The others have a point for each 5 minutes in 24 hours: the answer if
        `class` is one of them.

        Percentiles of delays are counted from the first request for the history or the classes on, until
        nobody has asked for a minute.

        Parameters
        ----------
        from_ : str
            The interface that the direction receives from.
        class_ : str, optional
            Only this class, as `20/3`. Without it, the classes that have none below them and sent most.
        seconds : int, optional
            How far back: at most 86400. Default: 600.
        after : float, optional
            Only later points than this one of `at_s`.
        limit : int, optional
            How many classes at most. Default: 8.

        Returns
        -------
        HistoryDocument
            What the classes of a direction did. All lists have a member for each of the times.

        Raises
        ------
        NotFound
            There is no such direction, or no history of the class.

        Examples
        --------
        >>> run.history("eth0", seconds=60).now_s > 0
        True
        """
        return self._transport.ask(
            "GET",
            "/v1/history",
            HistoryDocument,
            query={"from": from_, "class": class_, "seconds": seconds, "after": after, "limit": limit},
        )

    def patch_node(
        self, name: str, *, down: str | None = None, up: str | None = None, if_match: str | None = None
    ) -> SubscriberMade:
        """Change the rates of a node of the network.

        With `if_match`, nothing is changed if anyone has changed the trees since the client has read
        them.

        Parameters
        ----------
        name : str
            Its name, as in `nodes` of `GET /v1/subscribers`.
        down : str, optional
            What it sends at most to the subscribers, like `200mbit`. Null or left out: as before.
        up : str, optional
            What it sends at most from them.
        if_match : str, optional
            The entity tag of the trees.

        Returns
        -------
        SubscriberMade
            A change that was made.

        Raises
        ------
        NotFound
            There is no such node.
        Stale
            The trees have changed since.
        Refused
            The run refuses it.

        Examples
        --------
        >>> made = run.patch_node("Site", down="50mbit")
        >>> [node.down_bps for node in run.subscribers().nodes]
        [50000000]
        """
        return self._transport.ask(
            "PATCH",
            path_of("/v1/nodes/{name}", name=name),
            SubscriberMade,
            body={**_given("down", down), **_given("up", up)},
            headers={"If-Match": if_match},
        )

    def openapi(self) -> dict[str, Any]:
        """The description of this API: OpenAPI 3.1.

        Returns
        -------
        dict
            This document.

        Examples
        --------
        >>> run.openapi()["openapi"]
        '3.1.0'
        """
        return self._transport.ask("GET", "/v1/openapi.json", dict)

    def outline(self, from_: str) -> OutlineDocument:
        """What a tree is made of: its disciplines and classes, with what was set.

        Parameters
        ----------
        from_ : str
            The interface that the direction receives from.

        Returns
        -------
        OutlineDocument
            What a tree is made of.

        Raises
        ------
        NotFound
            There is no such direction.

        Examples
        --------
        >>> [place.path for place in run.outline("eth0").places]
        ['root', '1', '20', '30']
        """
        return self._transport.ask("GET", "/v1/outline", OutlineDocument, query={"from": from_})

    def place(self, from_: str, path: str) -> PlaceDocument:
        """What can be set at a place of a tree, and the words that change it.

        Parameters
        ----------
        from_ : str
            The interface that the direction receives from.
        path : str
            The numbers of the classes from the root on, as `20/3`, or `root`.

        Returns
        -------
        PlaceDocument
            What can be set at a place.

        Raises
        ------
        NotFound
            There is no such direction or place.

        Examples
        --------
        >>> part = run.place("eth0", "30").changeable[0]
        >>> part.words, part.parameters[0].name
        ('class change 30', 'rate')
        """
        return self._transport.ask(
            "GET", "/v1/outline/place", PlaceDocument, query={"from": from_, "path": path}
        )

    def packets(self, *, seconds: float | None = None, from_: str | None = None) -> bytes:
        """The last packets, as a capture.

        Each packet has the time of its arrival at its queue, and a comment: what became of it, after how
        long, and in which class. Dropped packets are included. The run needs `packet_log`.

        Parameters
        ----------
        seconds : float, optional
            The time before now from which packets are wanted; all that are kept without it.
        from_ : str, optional
            The interface that has received them; both without it.

        Returns
        -------
        bytes
            pcapng.

        Raises
        ------
        NotFound
            The run keeps no packets, or has no such interface.

        Examples
        --------
        >>> len(run.packets(seconds=60)) > 0
        True
        """
        return self._transport.ask("GET", "/v1/packets", bytes, query={"seconds": seconds, "from": from_})

    def reload(self, *, because: str | None = None) -> ChangeMade:
        """Read the configuration again, as after SIGHUP.

        The trees become those of the file, with the reservations. Changes by hand since the last reading
        are undone. If the file is refused, the run continues unchanged.

        Parameters
        ----------
        because : str, optional
            Why, for the log of the run and for the versions of its file.

        Returns
        -------
        ChangeMade
            A change that was made.

        Raises
        ------
        Refused
            The run refuses the file.

        Examples
        --------
        >>> run.reload().revision == run.health().revision
        True
        """
        return self._transport.ask("POST", "/v1/reload", ChangeMade, body={**_given("because", because)})

    def reservations(self, *, from_: str | None = None) -> Reservations:
        """All reservations.

        Parameters
        ----------
        from_ : str, optional
            Only those of the direction from this interface.

        Returns
        -------
        Reservations
            Reservations: the one that was added, changed or refreshed, none after it was withdrawn, or
            all.

        Examples
        --------
        >>> [reservation.terms.name for reservation in run.reservations().reservations]
        ['call']
        """
        return self._transport.ask("GET", "/v1/reservations", Reservations, query={"from": from_})

    def reserve(
        self, terms: TermsStatus, *, from_: str | None = None, if_match: str | None = None
    ) -> Reservations:
        """Add a reservation.

        Parameters
        ----------
        terms : TermsStatus
            What is asked for.
        from_ : str, optional
            The interface that the direction receives from. It may be left out if reservations are
            possible in one direction only.
        if_match : str, optional
            The entity tag of the trees.

        Returns
        -------
        Reservations
            Reservations: the one that was added, changed or refreshed, none after it was withdrawn, or
            all.

        Raises
        ------
        Stale
            The trees have changed since.
        Refused
            It can't be promised.

        Examples
        --------
        >>> terms = TermsStatus(
        ...     name="video",
        ...     rate_bps=2_000_000,
        ...     burst_bytes=3000,
        ...     filter="destination_port=5005 protocol=udp",
        ...     lifetime_ms=90_000,
        ...     delay_us=20_000,
        ...     peak_bps=8_000_000,
        ...     excess="drop",
        ... )
        >>> run.reserve(terms).reservations[0].promised_us <= 20_000
        True
        """
        return self._transport.ask(
            "POST",
            "/v1/reservations",
            Reservations,
            body={**_given("from", from_), "terms": terms},
            headers={"If-Match": if_match},
        )

    def change_reservation(
        self, name: str, terms: TermsStatus, *, from_: str | None = None, if_match: str | None = None
    ) -> Reservations:
        """Give a reservation other terms; if they are refused, the old ones hold.

        Parameters
        ----------
        name : str
            The name of the reservation.
        terms : TermsStatus
            What is asked for.
        from_ : str, optional
            The interface that the direction receives from. It may be left out if reservations are
            possible in one direction only.
        if_match : str, optional
            The entity tag of the trees.

        Returns
        -------
        Reservations
            Reservations: the one that was added, changed or refreshed, none after it was withdrawn, or
            all.

        Raises
        ------
        Stale
            The trees have changed since.
        Refused
            The terms can't be promised.

        Examples
        --------
        >>> terms = run.reservations().reservations[0].terms
        >>> terms.rate_bps = 200_000
        >>> run.change_reservation("call", terms).reservations[0].terms.rate_bps
        200000
        """
        return self._transport.ask(
            "PUT",
            path_of("/v1/reservations/{name}", name=name),
            Reservations,
            body={**_given("from", from_), "terms": terms},
            headers={"If-Match": if_match},
        )

    def withdraw(self, name: str, *, from_: str | None = None, if_match: str | None = None) -> Reservations:
        """End a reservation.

        Parameters
        ----------
        name : str
            The name of the reservation.
        from_ : str, optional
            The interface that the direction receives from.
        if_match : str, optional
            The entity tag of the trees.

        Returns
        -------
        Reservations
            Reservations: the one that was added, changed or refreshed, none after it was withdrawn, or
            all.

        Raises
        ------
        Stale
            The trees have changed since.
        Refused
            There is no such reservation.

        Examples
        --------
        >>> run.withdraw("call").reservations
        []
        """
        return self._transport.ask(
            "DELETE",
            path_of("/v1/reservations/{name}", name=name),
            Reservations,
            query={"from": from_},
            headers={"If-Match": if_match},
        )

    def refresh(self, name: str, *, from_: str | None = None) -> Reservations:
        """Let a reservation live for another lifetime from now on.

        Parameters
        ----------
        name : str
            The name of the reservation.
        from_ : str, optional
            The interface that it receives from. It may be left out if reservations are possible in one
            direction only.

        Returns
        -------
        Reservations
            Reservations: the one that was added, changed or refreshed, none after it was withdrawn, or
            all.

        Raises
        ------
        Refused
            There is no such reservation.

        Examples
        --------
        >>> run.refresh("call").reservations[0].expires_s > 80
        True
        """
        return self._transport.ask(
            "POST",
            path_of("/v1/reservations/{name}/refresh", name=name),
            Reservations,
            body={**_given("from", from_)},
        )

    def status(self, *, used: bool = False, classes: str | None = None) -> Status:
        """The whole status.

        Parameters
        ----------
        used : bool, optional
            Leave out what no packet has come to, and the description of the trees: with thousands of
            classes this is much faster.
        classes : str, optional
            The numbers of a page of the classes at the roots, as `16-115`: the counters of these and of
            what is in them, however many there are.

        Returns
        -------
        Status
            The status of a run.

        Examples
        --------
        >>> run.status().revision == run.health().revision
        True
        """
        return self._transport.ask(
            "GET", "/v1/status", Status, query={"used": used or None, "classes": classes}
        )

    def direction_status(
        self, from_: str, *, used: bool = False, classes: str | None = None
    ) -> DirectionStatus:
        """The status of one direction.

        Parameters
        ----------
        from_ : str
            The interface that the direction receives from.
        used : bool, optional
            Leave out what no packet has come to.
        classes : str, optional
            The numbers of a page of the classes at the root, as `16-115`.

        Returns
        -------
        DirectionStatus
            The status of one direction.

        Raises
        ------
        NotFound
            No direction is from this interface.

        Examples
        --------
        >>> run.direction_status("eth0").to
        'eth1'
        """
        return self._transport.ask(
            "GET",
            path_of("/v1/status/{from_}", from_=from_),
            DirectionStatus,
            query={"used": used or None, "classes": classes},
        )

    def class_status(self, from_: str, path: str) -> ClassDocument:
        """The status of one class, and of what is below it.

        Parameters
        ----------
        from_ : str
            The interface that the direction receives from.
        path : str
            The numbers of the classes from the root on, as `20/3`.

        Returns
        -------
        ClassDocument
            A class: the state that the discipline above it keeps for it, and the discipline in it.

        Raises
        ------
        NotFound
            There is no such class.

        Examples
        --------
        >>> found = run.class_status("eth0", "30")
        >>> found.discipline.discipline
        'fq_codel'
        >>> found.state.variables["lent_packets"]
        0
        """
        return self._transport.ask(
            "GET", path_of("/v1/status/{from_}/class", from_=from_), ClassDocument, query={"path": path}
        )

    def subscribers(self) -> SubscriberDocument:
        """All subscribers.

        Returns
        -------
        SubscriberDocument
            The subscribers.

        Examples
        --------
        >>> [subscriber.id for subscriber in run.subscribers().subscribers]
        ['1001', '1002']
        """
        return self._transport.ask("GET", "/v1/subscribers", SubscriberDocument)

    def replace_subscribers(
        self,
        subscribers: Iterable[Entry],
        *,
        confirmed_removed: int | None = None,
        if_match: str | None = None,
    ) -> SubscriberMade:
        """Put another list in the place of the whole one.

        With `if_match`, nothing is changed if anyone has changed the trees since the client has read
        them. A list that removes more subscribers than `most_removed` of the run allows, or all of them,
        is refused unless `confirmed_removed` has their number.

        Parameters
        ----------
        subscribers : iterable of Entry
            All subscribers.
        confirmed_removed : int, optional
            The number of subscribers that it may remove whatever their share is.
        if_match : str, optional
            The entity tag of the trees.

        Returns
        -------
        SubscriberMade
            A change that was made.

        Raises
        ------
        Stale
            The trees have changed since.
        Refused
            The list has mistakes, or removes too many.

        Examples
        --------
        >>> before = run.subscribers()
        >>> made = run.replace_subscribers(before.subscribers[:1], if_match=before.etag)
        >>> len(run.subscribers().subscribers)
        1
        """
        return self._transport.ask(
            "PUT",
            "/v1/subscribers",
            SubscriberMade,
            body={
                **_given("confirmed_removed", confirmed_removed),
                "subscribers": _arguments.listed("subscribers", subscribers),
            },
            headers={"If-Match": if_match},
        )

    def patch_subscribers(
        self, subscribers: Iterable[dict[str, Any]], *, for_s: int | None = None, if_match: str | None = None
    ) -> SubscriberMade:
        """Change members of several subscribers.

        All of them change, or none. With `if_match`, nothing is changed if anyone has changed the trees
        since the client has read them.

        Parameters
        ----------
        subscribers : iterable of dict
            For each subscriber its `id`, and the members that change; null leaves one to the plan.
        for_s : int, optional
            For how long `down` and `up` hold, seconds, at most 31,622,400. Then those of the list do
            again, which stays as it is. 0 ends a limit now. Without it, the list changes.
        if_match : str, optional
            The entity tag of the trees.

        Returns
        -------
        SubscriberMade
            A change that was made.

        Raises
        ------
        Stale
            The trees have changed since.
        Refused
            A subscriber is missing, or has mistakes.

        Examples
        --------
        >>> made = run.patch_subscribers([{"id": "1001", "down": "60mbit"}, {"id": "1002", "down": "9mbit"}])
        >>> made.difference.changed, run.subscriber("1001").subscriber.down
        (2, '60mbit')
        """
        return self._transport.ask(
            "PATCH",
            "/v1/subscribers",
            SubscriberMade,
            body={**_given("for_s", for_s), "subscribers": _arguments.listed("subscribers", subscribers)},
            headers={"If-Match": if_match},
        )

    def subscriber(self, id: str) -> SubscriberStatus:
        """A subscriber.

        Parameters
        ----------
        id : str
            Its identifier.

        Returns
        -------
        SubscriberStatus
            A subscriber and its class.

        Raises
        ------
        NotFound
            There is no such subscriber.

        Examples
        --------
        >>> run.subscriber("1001").subscriber.prefixes
        ['100.64.0.1/32']
        """
        return self._transport.ask("GET", path_of("/v1/subscribers/{id}", id=id), SubscriberStatus)

    def put_subscriber(self, id: str, document: Entry, *, if_match: str | None = None) -> SubscriberMade:
        """Add a subscriber, or change it as a whole.

        Parameters
        ----------
        id : str
            Its identifier.
        document : Entry
            A subscriber. What is null or left out comes from the plan.
        if_match : str, optional
            The entity tag of the subscriber.

        Returns
        -------
        SubscriberMade
            A change that was made.

        Raises
        ------
        Stale
            The subscriber has changed since.
        Refused
            The document has mistakes.

        Examples
        --------
        >>> made = run.put_subscriber("1003", Entry(prefixes=["100.64.0.3"], plan="home"))
        >>> run.subscriber("1003").subscriber.plan
        'home'
        """
        return self._transport.ask(
            "PUT",
            path_of("/v1/subscribers/{id}", id=id),
            SubscriberMade,
            body=document,
            headers={"If-Match": if_match},
        )

    def remove_subscriber(self, id: str, *, if_match: str | None = None) -> SubscriberMade:
        """Remove a subscriber.

        Parameters
        ----------
        id : str
            Its identifier.
        if_match : str, optional
            The entity tag of the subscriber.

        Returns
        -------
        SubscriberMade
            A change that was made.

        Raises
        ------
        NotFound
            There is no such subscriber.
        Stale
            The subscriber has changed since.
        Refused
            The run refuses it.

        Examples
        --------
        >>> made = run.remove_subscriber("1002")
        >>> run.subscriber("1002")
        Traceback (most recent call last):
        fairgate.client.errors.NotFound: There is nothing here: there is no subscriber `1002`
        """
        return self._transport.ask(
            "DELETE", path_of("/v1/subscribers/{id}", id=id), SubscriberMade, headers={"If-Match": if_match}
        )

    def patch_subscriber(
        self, id: str, document: Mapping[str, Any], *, if_match: str | None = None
    ) -> SubscriberMade:
        """Change members of a subscriber.

        Parameters
        ----------
        id : str
            Its identifier.
        document : mapping
            Members of a subscriber that change: those of the document; null leaves one to the plan.
        if_match : str, optional
            The entity tag of the subscriber.

        Returns
        -------
        SubscriberMade
            A change that was made.

        Raises
        ------
        NotFound
            There is no such subscriber.
        Stale
            The subscriber has changed since.
        Refused
            The changed document has mistakes.

        Examples
        --------
        >>> before = run.subscriber("1002")
        >>> made = run.patch_subscriber("1002", {"down": "50mbit", "name": None}, if_match=before.etag)
        >>> run.subscriber("1002").subscriber.down
        '50mbit'
        """
        return self._transport.ask(
            "PATCH",
            path_of("/v1/subscribers/{id}", id=id),
            SubscriberMade,
            body=dict(document),
            headers={"If-Match": if_match},
        )

    def subscriber_now(self, id: str) -> SubscriberNow:
        """What a subscriber does just now, and why it is slow.

        The run is read once a second, or less often if a reading takes more than 5 % of the time. The
        cause is the first one of these: its plan, a node of the network that it shares, bursts in its
        queue, losses before this machine, long round trips of its flows behind it.

        Parameters
        ----------
        id : str
            Its identifier.

        Returns
        -------
        SubscriberNow
            What a subscriber does just now.

        Raises
        ------
        NotFound
            There is no such subscriber.

        Examples
        --------
        >>> run.subscriber_now("1001").down.why.text
        'Nothing passes just now.'
        """
        return self._transport.ask("GET", path_of("/v1/subscribers/{id}/now", id=id), SubscriberNow)

    @overload
    def trees(self, *, if_none_match: None = None) -> TreesStatus: ...

    @overload
    def trees(self, *, if_none_match: str) -> TreesStatus | None: ...

    def trees(self, *, if_none_match: str | None = None) -> TreesStatus | None:
        """The trees, as a configuration file has them.

        Parameters
        ----------
        if_none_match : str, optional
            The entity tag of trees that the client has already.

        Returns
        -------
        TreesStatus or None
            The trees of a run. None: The client has them.

        Examples
        --------
        >>> trees = run.trees()
        >>> [direction.from_ for direction in trees.directions]
        ['eth0', 'eth1']
        >>> run.trees(if_none_match=trees.etag) is None
        True
        """
        return self._transport.ask_unless_known(
            "GET", "/v1/trees", TreesStatus, headers={"If-None-Match": if_none_match}
        )

    def what_if(
        self,
        *,
        from_: str | None = None,
        queues: Iterable[str] | None = None,
        rate: str | None = None,
        seconds: float | None = None,
    ) -> str:
        """What would other disciplines have done just now?.

        The last packets are replayed through the tree as it is and through other disciplines, at the rate
        of the link. The answer is the page of `fairgate compare`. The run needs `packet_log`.

        Parameters
        ----------
        from_ : str, optional
            The interface that the direction receives from. It may be left out if only one direction has a
            rate at the root of its tree.
        queues : iterable of str, optional
            Disciplines with settings, like `fifo limit=100`, at most 8. The tree as it is comes first,
            whatever is given here. Without any, these are fifo, fq_codel and cake.
        rate : str, optional
            The rate of the link, like `20mbit`. Without it, the rate at the root of the tree.
        seconds : float, optional
            The time before now from which packets are taken, seconds. Without it, all that are kept.

        Returns
        -------
        str
            A page.

        Raises
        ------
        NotFound
            The run keeps no packets.
        Refused
            The question can't be answered.

        Examples
        --------
        >>> "the present tree" in run.what_if(from_="eth0", queues=["fifo limit=100"], rate="20mbit")
        True
        """
        return self._transport.ask(
            "POST",
            "/v1/what-if",
            str,
            body={
                **_given("from", from_),
                **_given("queues", queues),
                **_given("rate", rate),
                **_given("seconds", seconds),
            },
        )
