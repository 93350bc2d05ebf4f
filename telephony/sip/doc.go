// Package sip is Trunkline's own SIP: a registrar for phones, and the legs of
// calls, over UDP and TCP. The stack below it (parser, transports,
// transactions) is emiago/sipgo; dialogs, offers and answers, session timers,
// registration, digest and limits are here.
//
// It refuses to be a proxy or a switch: it does not connect legs, knows no
// numbers and touches no media. Who takes a call is for the handlers that
// Server.Handle was given, by the prefix of the user that is called; where a
// call goes to is for who dials. A REFER is sent (Leg.Refer)
// but a peer's is declined. Redirections are not followed, PRACK, TLS and SRTP
// are not spoken.
//
// # Who may do what
//
// A call comes from a registered phone that proves itself (407), or from a
// trusted network. Everybody else is refused (403), and an address that keeps
// failing gets no answer at all. What is refused leaves nothing behind: no
// transaction, no retransmission. Limits bound messages for each address and
// over all, calls, and connections; each counts what it dropped.
//
// # Callbacks and goroutines
//
// Each rule is simple:
//   - Handler.ServeInvite has a goroutine of its own for each call.
//   - Call.OnProgress is called by the goroutine that called Dial.
//   - An OfferFunc has a goroutine of its own, and is never called twice at
//     once for one leg. It may call Reinvite on another leg. While it works,
//     the leg's peer gets 500 for a further offer, and while our own offer
//     waits, 491; who meets that tries again after the random time of RFC 3261.
//   - Devices' methods are called by whoever noticed, and must not block.
//
// No lock is held during any of them. Server.Run has three goroutines: one for
// each listener, and one that looks for registrations that ran out; each TCP
// connection has one. A request has one while it is worked on. Transactions that
// outlive the call that began them (a CANCEL, a BYE, a 2xx that waits for its
// ACK) are tasks, which Run waits for when it ends, three seconds at most.
//
// Lock order: Invite.mu, then Leg.mu, then Server.mu. None is held while a message is
// waited for. The stack calls Server.guard before it parses, and a
// transaction's OnCancel and OnTerminate with its own lock held: they only end
// a context.
//
// # When it is full
//
// Legs at Limits.MaxCalls: 503 with Retry-After. Bindings away (Redis):
// REGISTER and INVITE get 503, calls that are up go on.
package sip
