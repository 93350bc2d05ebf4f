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
//	main, state                                      the frame of all pages; what they share: session, floor, events, address
//	ui, preact                                       components: lists, forms, dialogs; the library (docs/decisions/0013)
//	session, http, login                             the user's tokens, requests with them; the login
//	channel_connection, channel_position, reconnect  the channel's connection: resume, back-off, fallback
//	sse, clock, connection                           event streams; the server's time; the displayed connection state
//	floor, facts                                     agents, calls and queues of the server's snapshots; facts of messages
//	floor_page, actions                              the floor, and actions on its agents and calls
//	wall, preferences                                the wall; what the browser remembers
//	history, history_range, history_calls, call_page figures and calls of a range; one call
//	recording_player                                 a recording: both channels, seeking by Range
//	alerts                                           the banner, the list and the rules
//	admin, resources, admin_pages                    administration: the list and the dialog; the resources as data; other pages
//	phone                                            click to call
//	events, feed, event_rates, explain, explain_texts the events, for engineers
//	formulas, plot                                   formulas of figures; charts
//	format, event_types                              formats; the event types
//	docs…, dom, schema, markdown                     the pages under /docs
//
// jstest/ holds the modules' unit tests, which Node runs (js_test.go).
//
// No goroutines and no state: a Handler is safe for any number of requests.
package web
