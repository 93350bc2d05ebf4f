// Package aisession connects calls to AI providers, with one Session per call
// for every ingress (docs/ai.md). The ingresses are the packages sipcall,
// audiosocket and pcmsocket.
//
// If this is your first change, read call.go (the interface of an ingress),
// session.go (a session from Open to its end) and session_tick.go (the work of every 20 ms).
//
//	call ─ReceiveAudio─▶ jitter buffer ─▶ transcoder ─┐        ┌─▶ sendQueue ─▶ socket ─▶ provider
//	                                                  ├─ tick ─┤
//	call ◀─Play─── transcoder ◀─── playout ◀──────────┘        └── reader ◀──── socket ◀─ provider
//
// A tick runs every 20 ms on absolute deadlines. It reads what the provider has sent, passes one frame
// of it, or silence, to the call, and one frame of the caller's audio, with losses concealed, to the
// provider. The two directions do not wait for each other, and a tick never waits for a socket: after
// the handshakes a provider's socket is removed from Go's poller and is non-blocking. Reading only at
// ticks adds no delay, because audio that arrives between two ticks is played at the second at the
// earliest. It replaces three goroutine wake-ups per frame with work in a thread that is already
// running.
//
// Only the ingresses depend on SIP, Asterisk and FreeSWITCH. A provider that did not opt in to
// extensions gets only the basic messages; invalid messages from a provider are counted and ignored.
//
// # Goroutines
//
//   - one per wheel of the tickScheduler, with one wheel per core, which sleeps in the
//     kernel while it has sessions; one that publishes events; one that renews
//     session leases: Run stops them when its context and the sessions have
//     ended;
//   - none for a session's socket: the tickScheduler ticks it from its handshake until
//     it is closed, at most closeTimeout after its close frame;
//   - one per session that carries out the requests of a provider with
//     extensions; it ends with the session;
//   - Session.Run runs in its caller's goroutine.
//
// # Limits
//
//   - Open refuses sessions above the limit of the node or the account.
//   - A provider that does not read: the sendQueue drops the oldest audio above two
//     seconds, and the connection fails when nothing can be written for
//     writeTimeout.
//   - A provider that sends more than Settings.PlayoutLimit ahead: the newest audio
//     is dropped. At most maxTickBytes are read per tick; TCP flow control
//     holds back the rest.
//   - Invalid messages of a provider: above a rate, reading pauses (read_throttle.go).
//   - audio.JitterBuffer drops the oldest of a caller's packets.
//   - Events above a thousand that wait for Kafka are dropped and counted.
//
// # Lock order
//
// Session.tickMu, providerConn.encodeMu, wheel.mu, playout.mu, sendQueue.mu, providerConn.mu,
// Service.mu. None of them is held while another is taken, except Session.tickMu and
// providerConn.encodeMu, which may be held while any later one is taken. Fields of a providerConn
// and a nonblockingConn without a lock are used by the ticks only.
//
// # Files
//
// Read call.go, what a call is for this package, then session.go and session_tick.go.
//
//   - service.go, deps.go, settings.go, metrics.go: the service, what it needs, settings, metrics
//   - twilio_call_update.go: the end and the transfer of a Twilio bot's call by REST, on any node
//   - call_on_platform.go: transfer and hangup by the platform, where an ingress only has the audio
//   - call.go, session_request.go, announced_calls.go, announced_calls_redis.go, dialplan_auth.go: a call,
//     and how one is known before it comes: from the API, or from a dialplan
//   - session.go, publish_events.go, end_reason.go, hangup_cause.go, provider_requests.go, trace.go: a
//     session, its events, its end, what a provider may ask for, spans
//   - session_leases.go, session_leases_redis.go: how many sessions an account has
//   - tick_scheduler.go, session_tick.go, playout.go, provider_send_queue.go, recovered_panics.go, sleep_linux.go,
//     sleep_other.go: every 20 ms: the timers, a tick, audio to the caller, audio to the provider; where panics
//     are recovered
//   - provider_connection.go, provider_dial.go, provider_message_handler.go, provider_connection_error.go,
//     provider_test_call.go, reconnect.go: the connection to a provider: dialling, reading, its errors,
//     the test of a provider, a second connection
//   - nonblocking_conn.go, message_assembler.go, read_throttle.go, tcp_options_linux.go,
//     tcp_options_other.go: its socket without waiting (decision 0004), and WebSocket messages from
//     bytes
package aisession
