// Package web is the live board at "/" and the pages under /docs that make the
// descriptions of the API readable: HTML, CSS and ES modules, embedded as they
// lie in static. Nothing is built, bundled or fetched from elsewhere.
//
// It refuses to know anything: the pages are the same for everybody, hold no
// secret, and use the public API with the tokens of whoever has logged in. Its
// Content-Security-Policy refuses inline scripts and styles, other origins, and
// (Trusted Types) every way of turning a string into HTML, so that what comes
// in events stays text.
//
// static/ by purpose:
//
//	main, views              puts the board together; which part is seen
//	session, http            who is logged in, and requests on their behalf
//	link, place, endings     the channel's connection: resume, back-off, fallback
//	sse, clock, light        event streams as text; the server's time; the connection as it is seen
//	floor, sources, words    what the events say of agents and calls (fanout/snapshot)
//	agents, calls, feed      what is seen of that
//	pulse, spark             rates and latency, and their charts
//	dial, lookup, admin      click to call, call records, administration
//	dom, show, kinds         small helpers of all of these; the event types
//	docs…, schema, markdown  the pages under /docs
//
// jstest/ holds the modules' unit tests, which Node runs (js_test.go).
//
// No goroutines and no state: a Handler is safe for any number of requests.
package web
