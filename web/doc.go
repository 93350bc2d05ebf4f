// Package web serves the live board at "/" and the pages under /docs that show
// the API descriptions: HTML, CSS and ES modules, embedded unchanged from static.
// Nothing is built, bundled or fetched from other servers.
//
// The server side has no data: the pages are the same for all users, contain no
// secret, and use the public API with the tokens of the user who has logged in.
// The Content-Security-Policy forbids inline scripts and styles, other origins,
// and (Trusted Types) turning a string into HTML, so that the contents of events
// stay text.
//
// static/ by purpose:
//
//	main, views                                      create the board; show one of its views
//	session, http                                    the user's tokens, also of a login at the OpenID Connect provider, and requests with them
//	enrolment                                        one-time passwords of an administrator, before the login
//	channel_connection, channel_position, reconnect  the channel's connection: resume, back-off, fallback
//	sse, clock, connection_status                    event streams; the server's time; the displayed connection state
//	floor, facts                                     agents, calls and queues of the server's snapshots; facts of messages
//	filter_form                                      the filters of the events channel
//	agents, calls, event_list                        their display
//	event_rates, sparkline                           rates and latency, and their charts
//	figures, formulas, plot                          figures of queues and agents: loading, formulas, charts
//	dial, call_records                               click to call, call records
//	recording_player                                 a recording: both channels, seeking by Range
//	admin, directory                                 administration: recording keys and AI providers; accounts, users, keys
//	dom, format, event_types                         page elements and formats; the event types
//	docs…, schema, markdown                          the pages under /docs
//
// jstest/ holds the modules' unit tests, which Node runs (js_test.go).
//
// No goroutines and no state: a Handler is safe for any number of requests.
package web
