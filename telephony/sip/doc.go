// Package sip is Trunkline's own SIP: a registrar for phones, and the legs of
// calls, over UDP, TCP and TLS. The stack below it (parser, transports,
// transactions) is emiago/sipgo; this package has dialogs, offers and answers,
// session timers, registration, digest authentication and limits.
//
// It is neither a proxy nor a switch: it does not connect legs, has no dial
// plan and no media. Server.Handle assigns calls to handlers by the prefix of
// the called user; the caller of Server.Dial chooses the target of a call.
// Leg.Refer sends a REFER, but a REFER from a peer is declined. Redirections
// are not followed; PRACK is not supported.
//
// # Access
//
// Calls are accepted from a registered phone that authenticates (407) and from trusted networks. All
// others are refused (403). The Authenticator counts failed authentications, only of addresses that
// have received our nonce, so that forged datagrams do not count against a user. A refused request
// keeps no transaction and is not retransmitted. Limits apply to messages of each address and of all
// addresses, to calls and to connections; dropped messages are counted for each limit.
//
// The source of a datagram may be forged. Therefore the number of stored source addresses is bounded
// (udpSocket), a response without one of our branches is dropped before it is parsed (branchSigner), and an
// address that has not proven that it receives our messages gets fewer bytes than it sent
// (sourceLimiter.maySend). Requests are sent to a phone's registered address, the trunk's address, or a trusted
// network, regardless of Contact and Record-Route (Leg.nextHop).
//
// # Panics
//
// A panic loses one message or call. The stack parses streams and looks up transactions on its own
// goroutines, so this package parses each message first, where it can recover a panic (stackPanicGuard),
// including messages on connections that the stack has dialled. Panics in the stack's timers are not
// recovered.
//
// # Callbacks and goroutines
//
//   - Handler.ServeInvite has a goroutine of its own for each call.
//   - OutgoingCall.OnProgress is called by the goroutine that called Dial.
//   - An OfferFunc has a goroutine of its own, and there is one call at a time per leg. It may call
//     Reinvite on another leg. While it runs, the leg's peer gets 500 for a further offer; while our
//     own offer is unanswered, it gets 491 and retries after the random delay of RFC 3261.
//   - Methods of RegistrationListener are called on the goroutine that detected the change,
//     and must not block.
//
// No lock is held during any of them. Server.Run has a goroutine for
// each socket that it listens on, and one that detects expired registrations. Each TCP
// connection has one goroutine, and so has each request while it is handled.
// Transactions that outlive the call that began them (a CANCEL, a BYE, a 2xx
// without its ACK) are tasks; Run waits up to three seconds for them.
//
// Lock order: Invite.mu, then Leg.mu, then dialogs.mu. None is held while
// waiting for a message. The stack calls transports.limiter before it parses a
// message. It calls a transaction's OnCancel and OnTerminate with its own lock
// held, so they only end a context.
//
// # Limits
//
// Above Limits.MaxCalls legs, an INVITE gets 503 with Retry-After. While the
// bindings (Redis) are unavailable, REGISTER and INVITE get 503 and calls in
// progress continue.
//
// # Files
//
// Read server.go and dispatch_request.go, then invite.go for calls that come and dial.go for calls that go.
// A Server has transports (sockets and what is sent), dialogs (legs) and a registrar (phones), which use
// what stands before them in this list, and know nothing of the Server.
//
//   - server.go, config.go, settings.go, metrics.go, background_tasks.go, recovered_panics.go: the server,
//     settings, metrics, goroutines, where panics are recovered
//   - sip_stack.go, udp_socket.go, recent_peers.go, stream_listener.go, stack_panic_guard.go, source_limits.go,
//     via_branch.go, stack_logger.go: what comes in: sockets, checks before the stack's parser, limits for
//     sources, responses to our own requests
//   - dispatch_request.go, build_request.go, send_response.go: a request to its handler; requests and
//     responses of ours
//   - directory.go, authenticate.go, challenge_answer.go, nonce.go: users of the directory, and
//     digest authentication in both directions
//   - registrar.go, registrations.go, phone_binding.go, bindings_redis.go: a REGISTER, and what it changes
//   - dialogs.go, invite.go, invite_accept.go, ack.go: legs; a call that comes
//   - dial.go, outgoing_leg.go: a call that goes
//   - leg.go, dialog_request.go, session_timer.go, reinvite_send.go, reinvite_answer.go, refer.go:
//     a leg: its requests, the session timer, new offers, transfers
//   - sdp.go, sdp_write.go, codec.go, negotiate_media.go, media_encryption.go: media: SDP, codecs, the choice
//     of one, SRTP keys
//   - cause.go: causes of the end of a call
package sip
