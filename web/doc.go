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
//	main, views              create the board; show one of its views
//	session, http            the user's tokens, also of a login at the OpenID Connect provider, and requests with them
//	enrol                    one-time passwords of an administrator, before the login
//	link, place, endings     the channel's connection: resume, back-off, fallback
//	sse, clock, light        event streams; the server's time; the displayed connection state
//	floor, fold              states of agents and calls from facts (as event/state)
//	wanted                   the filters of the events channel
//	agents, calls, feed      their display
//	pulse, spark             rates and latency, and their charts
//	figures, sums, plot      figures of queues and agents: loading, formulas, charts
//	dial, lookup             click to call, call records
//	admin, directory         administration: recording keys and AI providers; accounts, users, keys
//	dom, show, kinds         page elements and formats; the event types
//	docs…, schema, markdown  the pages under /docs
//
// jstest/ holds the modules' unit tests, which Node runs (js_test.go).
//
// No goroutines and no state: a Handler is safe for any number of requests.
package web
